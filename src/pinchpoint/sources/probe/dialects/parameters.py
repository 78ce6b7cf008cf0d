"""What a request says beside model and prompt, and what becomes of it after a refusal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pinchpoint.snapshot import Placement

if TYPE_CHECKING:
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

_NOT_ACCEPTED = (
    "unsupported",
    "not supported",
    "does not support",
    "extra_forbidden",
    "extra inputs",
    "not permitted",
    "not allowed",
    "unrecognized",
    "unknown",
    "unexpected",
    "invalid parameter",
    "invalid field",
)
_OFF: Mapping[str, Any] = {"temperature": None, "reasoning_effort": None}  # the others are off when False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What the request says beside model and prompt. Servers differ in what they accept: a prober keeps what worked."""

    max_tokens: int
    token_field: str = "max_tokens"  # noqa: S105 - the name of a field, not a secret
    token_field_tried: bool = False  # the other name was refused: this one has to do
    stream_usage: bool = True
    continuous_usage: bool = False
    ignore_eos: bool = False
    temperature: float | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, target: ProbeTargetSettings) -> Parameters:
        """The target's profile, with the defaults of its placement where the operator left them open."""
        local, profile = target.placement is Placement.LOCAL, target.parameters
        return cls(
            max_tokens=target.max_tokens,
            token_field=profile.token_field,
            stream_usage=profile.stream_usage,
            continuous_usage=local if profile.continuous_usage is None else profile.continuous_usage,
            ignore_eos=local if profile.ignore_eos is None else profile.ignore_eos,
            temperature=profile.temperature,
            reasoning_effort=profile.reasoning_effort,
            extra_body=profile.extra_body,
        )


def not_accepted(refusal: str) -> bool:
    """Whether the refusal is of the kind that names a field, and not of the kind that objects to a value."""
    return any(phrase in refusal for phrase in _NOT_ACCEPTED)


def without(parameters: Parameters, refusal: str, words: Mapping[str, tuple[str, ...]]) -> Parameters | None:
    """The parameters with the first one off that is on and that the refusal names; ``None`` when it names none.

    ``words`` are those by which this dialect's refusals name each field of ``Parameters``, in the order to try.
    """
    for name, spoken in words.items():
        off = _OFF.get(name, False)
        if getattr(parameters, name) is not off and any(word in refusal for word in spoken):
            change: dict[str, Any] = {name: off}
            return replace(parameters, **change)
    return None
