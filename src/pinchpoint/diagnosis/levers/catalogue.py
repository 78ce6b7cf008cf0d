"""Every lever in its order, and for which classes it is one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.levers import batching, growing, hardware, memory, mending, spreading
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

_KV, _COMPUTE, _BANDWIDTH = Bottleneck.KV_CAPACITY, Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH
_SCHEDULER, _HOST, _LINK = Bottleneck.SCHEDULER, Bottleneck.HOST_CPU, Bottleneck.INTERCONNECT
_CARDS = frozenset({_KV, _COMPUTE, _BANDWIDTH})

Offer = Callable[[Situation], Advice | None]


@dataclass(frozen=True, slots=True)
class Lever:
    """``offer`` is its advice for an engine, ``None`` where it is no lever there."""

    classes: frozenset[Bottleneck]
    offer: Offer


def _lever(offer: Offer, *classes: Bottleneck) -> Lever:
    return Lever(frozenset(classes), offer)


# Mend first, then what costs a restart, then what costs quality, then what costs money.
LEVERS: tuple[Lever, ...] = (
    # Health, host, gateway
    _lever(mending.restore_scrape, Bottleneck.NO_DATA),
    _lever(mending.wake_engine, Bottleneck.SLEEPING),
    _lever(mending.check_engine_log, Bottleneck.STALLED),
    _lever(hardware.check_cooling, Bottleneck.HARDWARE),
    _lever(hardware.check_power, Bottleneck.HARDWARE),
    _lever(hardware.check_pcie_link, Bottleneck.HARDWARE),
    _lever(hardware.drain_gpu, Bottleneck.HARDWARE),
    _lever(hardware.reset_gpu, Bottleneck.HARDWARE),
    _lever(mending.stop_memory_growth, Bottleneck.MEMORY_GROWTH),
    _lever(mending.restart_engine, Bottleneck.STALLED, Bottleneck.MEMORY_GROWTH),
    _lever(mending.raise_cpu_quota, _HOST),
    _lever(mending.give_cpu_cores, _HOST),
    _lever(mending.add_api_servers, _HOST),
    _lever(mending.async_scheduling, _HOST),
    _lever(mending.cuda_graphs, _HOST),
    _lever(mending.unbuffer_gateway, Bottleneck.NETWORK),
    _lever(mending.check_gateway, Bottleneck.NETWORK),
    _lever(spreading.enable_p2p, _LINK),
    # Prefix caching and routing
    _lever(batching.prefix_caching, *_CARDS),
    _lever(batching.share_prefixes, _COMPUTE),
    # Batch limits
    _lever(batching.raise_max_num_seqs, _SCHEDULER),
    _lever(batching.raise_max_num_batched_tokens, _SCHEDULER),
    _lever(batching.tune_max_num_batched_tokens, _COMPUTE),
    _lever(batching.lower_max_num_seqs, _BANDWIDTH),
    _lever(batching.batch_requests, _SCHEDULER, _COMPUTE),
    # Memory: share of the card, KV cache, weights
    _lever(memory.limit_max_model_len, _KV),
    _lever(memory.raise_gpu_memory_utilization, _KV),
    _lever(memory.fp8_kv_cache, _KV, _BANDWIDTH),
    _lever(memory.fp8_weights, _COMPUTE, _BANDWIDTH),
    _lever(memory.quantize_weights, _KV, _BANDWIDTH),
    _lever(memory.speculative_decoding, _BANDWIDTH),
    # How the GPUs there are are used
    _lever(spreading.rebalance_replicas, Bottleneck.IMBALANCE, _SCHEDULER, *_CARDS),
    _lever(spreading.place_on_linked_gpus, _LINK),
    _lever(spreading.prefer_data_parallel, _LINK),
    _lever(spreading.prefer_pipeline_parallel, _LINK),
    # More of them
    _lever(growing.add_replica, _SCHEDULER, *_CARDS),
    _lever(growing.raise_tensor_parallel_size, *_CARDS),
    _lever(growing.mig_slices, Bottleneck.MEMORY_GROWTH),
    _lever(growing.move_to_larger_gpu, _KV, _BANDWIDTH),
    # Nothing is known well enough
    _lever(mending.add_signals, Bottleneck.UNKNOWN, _SCHEDULER, _COMPUTE),
)


_BY_CLASS = {
    bottleneck: tuple(lever.offer for lever in LEVERS if bottleneck in lever.classes) for bottleneck in Bottleneck
}


# Where the cards and the host are looked at, whose readings are new each second.
_BY_THE_MACHINE = (Bottleneck.HARDWARE, _HOST)


def looked_at(bottleneck: Bottleneck, signals: Signals) -> tuple[object, ...]:
    """All that the levers of a class depend on: with the same of it they are the same."""
    machine = (signals.devices, signals.host) if bottleneck in _BY_THE_MACHINE else ()
    return (
        signals.absence,
        signals.not_exposed,
        signals.facts,
        signals.slo,
        signals.load,
        signals.latency,
        signals.roofline,
        signals.links,
        signals.spread,
        signals.growth,
        signals.compared,
        signals.way,
        signals.probed,
        *machine,
    )


def levers_for(
    bottleneck: Bottleneck, signals: Signals, thresholds: Thresholds, missing: Sequence[str] = ()
) -> tuple[Advice, ...]:
    """The levers of a class on this engine, the cheapest first; none where nothing needs to be done.

    ``missing`` are the signals that the verdict lacked.
    """
    situation = Situation(bottleneck, signals, thresholds, missing)
    return tuple(advice for offer in _BY_CLASS[bottleneck] if (advice := offer(situation)) is not None)
