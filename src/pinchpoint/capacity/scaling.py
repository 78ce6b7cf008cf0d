"""Would more GPUs help? A first verdict from the class of the bottleneck alone."""

from dataclasses import dataclass

from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """``more_gpus_help`` is ``None`` when the evidence does not say; ``reason`` is one sentence."""

    more_gpus_help: bool | None
    reason: str


# More replicas add what the class lacks (yes), or leave the pinch where it is (no).
_BY_CLASS: dict[Bottleneck, tuple[bool, str]] = {
    Bottleneck.KV_CAPACITY: (True, "another replica brings its own KV cache; try the cheaper levers first"),
    Bottleneck.COMPUTE: (True, "prefill is at what this card can do; another replica adds compute"),
    Bottleneck.MEMORY_BANDWIDTH: (
        True,
        "decode streams all that this card's memory can; another replica adds bandwidth",
    ),
    Bottleneck.IDLE: (False, "what there is has nothing to do"),
    Bottleneck.HEALTHY: (False, "the service meets its objectives with the GPUs it has"),
    Bottleneck.SCHEDULER: (False, "a configured limit stops the engine while memory and compute are free"),
    Bottleneck.HOST_CPU: (False, "the host can't feed the GPUs it has"),
    Bottleneck.NETWORK: (False, "time is lost between client and engine"),
    Bottleneck.HARDWARE: (False, "a card is sick or throttled; mend it first"),
    Bottleneck.IMBALANCE: (False, "some replicas idle while others queue"),
    Bottleneck.STALLED: (False, "the engine does not work off what it has"),
    Bottleneck.SLEEPING: (False, "the engine is asleep"),
}


def judge_scaling(diagnosis: Diagnosis) -> Scaling:
    """Says whether adding a GPU (as one more replica) would help, or that the class does not tell."""
    if diagnosis.bottleneck in _BY_CLASS:
        helps, reason = _BY_CLASS[diagnosis.bottleneck]
        return Scaling(more_gpus_help=helps, reason=reason)
    return Scaling(more_gpus_help=None, reason="what is known does not tell")
