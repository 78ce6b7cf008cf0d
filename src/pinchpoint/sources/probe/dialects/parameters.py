"""What a request says beside model and prompt, and what becomes of it after a refusal. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pinchpoint.snapshot import Placement

if TYPE_CHECKING:
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

MAX_FLOOR_TOKENS = 256  # to which a server's minimum is followed: 16 is usual, and each token of a probe is paid for

_NOT_ACCEPTED = (
    "unsupported",
    "not supported",
    "does not support",
    "not enabled",
    "extra_forbidden",
    "extra inputs",
    "not permitted",
    "not allowed",
    "unrecognized",
    "unknown",
    "unexpected",
    "deprecated",
    "invalid parameter",
    "invalid field",
)  # of a field as such; what only objects to its value is the operator's to mend
_FLOOR = re.compile(r"(?:>=|at least|minimum (?:value )?(?:is|of)|greater than or equal to) ?(\d{1,6})\b")
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
    storage: bool = True  # say that the answer need not be stored (Responses)
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


def repaired(
    parameters: Parameters, refusal: str, optional: Mapping[str, tuple[str, ...]], token_fields: tuple[str, ...]
) -> Parameters | None:
    """The parameters without what a 400 or 422 names as not accepted; ``None`` when none of ours is to blame.

    ``refusal`` is the error's text, ``param`` and codes included. ``optional`` are the words by which this dialect's
    refusals name each field that can be left out, in the order to try; ``token_fields`` its names of the token limit.
    Every repair can happen once, or only grows, so retries end.
    """
    text = refusal.lower()
    limited = any(name.lower() in text for name in token_fields)
    floor = max((int(number) for number in _FLOOR.findall(text)), default=0) if limited else 0
    if parameters.max_tokens < floor <= MAX_FLOOR_TOKENS:
        return replace(parameters, max_tokens=floor)
    if not any(phrase in text for phrase in _NOT_ACCEPTED):
        return None
    for name, words in optional.items():
        off = _OFF.get(name, False)
        if getattr(parameters, name) is not off and any(word in text for word in words):
            change: dict[str, Any] = {name: off}
            return replace(parameters, **change)
    # "Use max_completion_tokens instead" names both fields: the one that was sent is the wrong one.
    if limited and len(token_fields) > 1 and parameters.token_field in text and not parameters.token_field_tried:
        other = next(name for name in token_fields if name != parameters.token_field)
        return replace(parameters, token_field=other, token_field_tried=True)
    return None
