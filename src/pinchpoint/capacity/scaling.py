"""Would more GPUs help? Asked as: would the same load, with one more replica or twice the ranks, be better off?

``None`` where something that costs no GPU comes first (a limit to raise, a card to mend, a process to restart) and
nobody knows what pinches after that; the reason then says what comes first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis

_THROTTLED = 0.25  # share of cgroup periods with the quota used up, from which the host is what every replica waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """``more_gpus_help`` is ``None`` when the evidence does not say; ``reason`` is one sentence, with the shape in
    which GPUs would help: a replica, more ranks, a larger card."""

    more_gpus_help: bool | None
    reason: str


_Verdict = tuple[bool | None, str]


def _kv_capacity(diagnosis: Diagnosis) -> _Verdict:
    if _offers(diagnosis, "raise_tensor_parallel_size"):
        return True, (
            "weights fill most of each card: twice the ranks, or larger cards, bring more KV cache than another replica"
        )
    return True, "another replica brings its own KV cache; try the cheaper levers first"


def _compute(diagnosis: Diagnosis) -> _Verdict:
    if _queues(diagnosis):
        return True, "prefill is at what these cards can do, and requests queue: another replica adds compute"
    if _offers(diagnosis, "raise_tensor_parallel_size"):
        return True, "one prompt takes too long without any queue: twice the ranks halve it, another replica does not"
    return True, "prefill is at what these cards can do; another replica adds compute"


def _memory_bandwidth(diagnosis: Diagnosis) -> _Verdict:
    if not _offers(diagnosis, "add_replica") and _offers(diagnosis, "raise_tensor_parallel_size"):
        return (
            True,
            "each token waits for all weights to be read: twice the ranks, or faster memory, not another replica",
        )
    if _offers(diagnosis, "raise_tensor_parallel_size"):
        return True, (
            "decode reads all that this memory can: another replica shares the batch, twice the ranks share the weights"
        )
    return True, "decode reads all that this card's memory can; another replica adds bandwidth"


def _scheduler(diagnosis: Diagnosis) -> _Verdict:
    if _offers(diagnosis, "add_replica"):
        return True, "slots are full and this replica bears no more of them: another brings its own"
    return None, "a limit stops the engine while memory and compute are free: raise it first, it costs no GPU, then see"


def _host_cpu(diagnosis: Diagnosis) -> _Verdict:
    if diagnosis.signals.get("host_cpu_throttled_ratio", 0.0) >= _THROTTLED:
        return False, "the quota can't feed the GPUs there are, and a replica under it takes CPU from the others"
    return None, "the host can't feed the GPUs it has: first the CPU; a replica helps only with cores of its own"


def _network(diagnosis: Diagnosis) -> _Verdict:
    """No engine is quick enough where the way alone takes longer than was promised."""
    way, ttft = diagnosis.signals.get("network_ttft_seconds"), diagnosis.ttft
    if way is not None and ttft is not None and way >= ttft.slo_seconds:
        return False, "the way from client to engine alone takes longer than the first token may; no GPU is there"
    return None, "time is lost between client and engine, where no GPU is: mend the way first, then see"


_BY_CLASS: Mapping[Bottleneck, Callable[[Diagnosis], _Verdict]] = {
    Bottleneck.KV_CAPACITY: _kv_capacity,
    Bottleneck.COMPUTE: _compute,
    Bottleneck.MEMORY_BANDWIDTH: _memory_bandwidth,
    Bottleneck.SCHEDULER: _scheduler,
    Bottleneck.HOST_CPU: _host_cpu,
    Bottleneck.NETWORK: _network,
}
_ALWAYS: Mapping[Bottleneck, _Verdict] = {
    Bottleneck.IDLE: (False, "what there is has nothing to do"),
    Bottleneck.HEALTHY: (False, "the service meets its objectives with the GPUs it has"),
    Bottleneck.SLEEPING: (False, "the engine is asleep: wake it"),
    Bottleneck.INTERCONNECT: (
        None,
        "more ranks over such links make it worse; first change how the model is split, then see",
    ),
    Bottleneck.IMBALANCE: (
        None,
        "some replicas have room while others queue: level the load first, the GPUs there are may well do",
    ),
    Bottleneck.HARDWARE: (None, "a card is sick or held back: mend it first, then see whether there are enough"),
    Bottleneck.STALLED: (None, "the engine does not work off what it has: bring it back first, then see"),
    Bottleneck.MEMORY_GROWTH: (None, "something else takes the card's memory: stop that first, then see"),
    Bottleneck.NO_DATA: (None, "the engine can't be seen"),
    Bottleneck.UNKNOWN: (None, "what is known does not tell"),
}


def judge_scaling(diagnosis: Diagnosis) -> Scaling:
    """Says whether more GPUs would help and in which shape, or that the evidence does not tell."""
    judge = _BY_CLASS.get(diagnosis.bottleneck)
    helps, reason = judge(diagnosis) if judge else _ALWAYS[diagnosis.bottleneck]
    return Scaling(more_gpus_help=helps, reason=reason)


def _offers(diagnosis: Diagnosis, action: str) -> bool:
    return any(advice.action == action for advice in diagnosis.advice)


def _queues(diagnosis: Diagnosis) -> bool:
    return diagnosis.signals.get("queue_share", 0.0) > 0.0
