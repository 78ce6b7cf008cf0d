"""Levers that cost money: replicas, more ranks, slices of a card, a larger card."""

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.batching import limit_is_right
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.levers.situation import Situation, tokens_in_words
from pinchpoint.diagnosis.verdict import Advice, Bottleneck
from pinchpoint.physics import GPUS, Gpu

# Measured in practice by those who doubled their GPUs; what is less needs a reason.
TENSOR_PARALLEL_GAIN = (1.5, 1.8)
REPLICA_GAIN = (1.8, 2.0)
_WEIGHTS_DEAR = 0.5  # share of the card, from which a second copy of the weights costs more than it brings
_LARGER = 1.3  # times the bandwidth or the memory of this card
_MIG_CARDS = ("A100", "A800", "H100", "H200", "B200")


def add_replica(situation: Situation) -> Advice | None:
    now = situation.replicas
    spread = situation.signals.spread
    if spread.replicas_queued and spread.replicas_with_room:
        return None  # there are replicas enough
    if situation.bottleneck is Bottleneck.SCHEDULER and not limit_is_right(situation):
        return None
    wait = situation.signals.load.queue_wait_seconds if situation.strain.queue else None
    brings = {
        Bottleneck.SCHEDULER: "slots; with more of them on this one tokens would be late, or the KV cache full",
        Bottleneck.KV_CAPACITY: "a KV cache of its own"
        + (f" of {tokens_in_words(situation.kv_tokens)}" if situation.kv_tokens else ""),
        Bottleneck.COMPUTE: "compute",
        Bottleneck.MEMORY_BANDWIDTH: "bandwidth: each card reads the KV cache of fewer requests",
    }[situation.bottleneck]
    if situation.bottleneck is Bottleneck.MEMORY_BANDWIDTH and _weights_dominate(situation):
        return None  # every replica reads all weights for each token, as this one does
    low, high = REPLICA_GAIN
    gain = (
        f"{low:g} to {high:g} times the throughput" if now == 1 else f"about {(now + 1) / now:.2g} times the throughput"
    )
    return Advice(
        action="add_replica",
        text=f"Then another replica: it brings {brings}.",
        reason=f"a new request waits {duration(wait)}" if wait else None,
        effect=f"{gain}; each takes {percent(1 / (now + 1))} of the load",
        flag=flag(situation.kind, "data_parallel_size", float(now + 1)),
        risk=f"{count(situation.ranks)} GPU{'s' if situation.ranks > 1 else ''} more; the balancer must spread evenly.",
    )


def raise_tensor_parallel_size(situation: Situation) -> Advice | None:
    """Where a replica would not do: weights fill the cards, one prompt is too slow, or tokens wait for the weights."""
    if situation.links_allow_tensor_parallelism is False or not _splits(situation):
        return None
    if situation.bottleneck is Bottleneck.KV_CAPACITY and not _weights_are_dear(situation):
        return None
    if situation.bottleneck is Bottleneck.COMPUTE and situation.strain.queue:
        return None  # a replica brings the same compute and exchanges nothing
    if situation.bottleneck is Bottleneck.MEMORY_BANDWIDTH and situation.strain.inter_token is None:
        return None
    ranks = 2 * situation.ranks
    unsure = situation.links_allow_tensor_parallelism is None
    return Advice(
        action="raise_tensor_parallel_size",
        text=f"Split the model over {ranks} GPUs that are linked by NVLink."
        + (" First see how the cards are linked (nvidia-smi topo -m)." if unsure else ""),
        reason=_why_split(situation),
        effect=_split_gain(situation, ranks),
        flag=flag(situation.kind, "tensor_parallel_size", float(ranks)),
        risk="If tokens get 10 % slower, stop: it is the links. Never across nodes on plain Ethernet.",
    )


def mig_slices(situation: Situation) -> Advice | None:
    gpu = situation.gpu
    if gpu is None or not any(name in gpu.name for name in _MIG_CARDS):
        return None
    return Advice(
        action="mig_slices",
        text="If small tenants share the card, give each a MIG instance (nvidia-smi mig -cgi): none can take another's "
        "memory.",
        reason=f"{gpu.name} can be split in up to 7",
        risk="The card has to be empty for it; an instance has a fixed part of the card, and no peer-to-peer.",
    )


def move_to_larger_gpu(situation: Situation) -> Advice | None:
    gpu = situation.gpu
    if gpu is None:
        return None
    memory = situation.bottleneck is Bottleneck.KV_CAPACITY
    better = [(ratio, other) for other in GPUS.values() if (ratio := _times(other, gpu, memory=memory)) >= _LARGER]
    if not better:
        return None
    ratio, other = min(better, key=lambda pair: pair[0])
    of_it = f"{gpu.memory_bytes / 2**30:.0f} GiB" if memory else f"{gpu.bandwidth_bytes_per_second / 1e12:.2g} TB/s"
    return Advice(
        action="move_to_larger_gpu",
        text=f"Or as many larger cards: {other.name} has {ratio:.1f} times the {'memory' if memory else 'bandwidth'}.",
        reason=f"{gpu.name} has {of_it}",
        effect=_larger_pool(situation, other) if memory else f"tokens up to {ratio:.1f} times as fast",
    )


def _times(other: Gpu, gpu: Gpu, *, memory: bool) -> float:
    if memory:
        return other.memory_bytes / gpu.memory_bytes
    return other.bandwidth_bytes_per_second / gpu.bandwidth_bytes_per_second


def _larger_pool(situation: Situation, other: Gpu) -> str | None:
    share, gpu = situation.signals.facts.gpu_memory_utilization, situation.gpu
    if share is None or gpu is None:
        return None
    then = situation.tokens_after(share * (other.memory_bytes - gpu.memory_bytes), situation.ranks)
    return (
        None
        if then is None
        else f"{tokens_in_words(then)} of KV cache instead of {tokens_in_words(situation.kv_tokens or 0)}"
    )


def _weights_are_dear(situation: Situation) -> bool:
    weights, gpu = situation.weight_bytes, situation.gpu
    return weights is not None and gpu is not None and weights / situation.ranks > _WEIGHTS_DEAR * gpu.memory_bytes


def _weights_dominate(situation: Situation) -> bool:
    size, running, weights = (
        situation.tokens_per_request,
        situation.signals.load.requests_running,
        situation.weight_bytes,
    )
    each = situation.kv_bytes_per_token(situation.ranks)
    if size is None or running is None or weights is None or each is None or situation.strain.inter_token is None:
        return False
    return size * running / situation.replicas * each < 0.25 * weights / situation.ranks


def _splits(situation: Situation) -> bool:
    """Attention heads are dealt out to ranks evenly, and a replica seldom has more than 8."""
    heads = situation.signals.facts.model_config.get("num_attention_heads")
    ranks = 2 * situation.ranks
    return ranks <= 8 and (not isinstance(heads, int) or heads % ranks == 0)


def _split_gain(situation: Situation, ranks: int) -> str:
    low, high = TENSOR_PARALLEL_GAIN
    if situation.bottleneck is Bottleneck.KV_CAPACITY and situation.weight_bytes is not None:
        freed = situation.weight_bytes / situation.ranks - situation.weight_bytes / ranks
        then, two = situation.tokens_after(freed, ranks), 2 * (situation.kv_tokens or 0.0)
        if then is not None and then > two:
            return f"{tokens_in_words(then)} of KV cache, against {tokens_in_words(two)} in two replicas of today"
    return f"{low:g} to {high:g} times as fast over NVLink"


def _why_split(situation: Situation) -> str | None:
    weights, gpu = situation.weight_bytes, situation.gpu
    if situation.bottleneck is Bottleneck.KV_CAPACITY and weights is not None and gpu is not None:
        return f"weights are {percent(weights / situation.ranks / gpu.memory_bytes)} of each card"
    if situation.bottleneck is Bottleneck.COMPUTE and situation.strain.ttft:
        return f"{situation.strain.ttft.text}, without a queue: one prompt is too slow on {count(situation.ranks)}"
    return situation.strain.inter_token.text if situation.strain.inter_token else None
