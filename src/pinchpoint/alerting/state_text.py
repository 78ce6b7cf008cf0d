"""States as text and back, for whoever keeps them over a restart. Times are written as they are given."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinchpoint.alerting.state import Instance, State, States

MOST_KEPT = 20_000  # instances of a text that is believed: 20 alerts at their limit

_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Instance(_Model):
    alert: str
    labels: dict[str, str]
    state: State
    value: float | None  # None: NaN or infinite, which JSON has no number for
    active_at: _Time
    fired_at: _Time | None
    keep_firing_since: _Time | None
    resolved_at: _Time | None


class _States(_Model):
    format: Literal["pinchpoint alerts 1"] = "pinchpoint alerts 1"
    at: _Time | None
    instances: Annotated[list[_Instance], Field(max_length=MOST_KEPT)]


class ForeignStatesError(ValueError):
    """A text that we did not write, or that was damaged since: one line."""


def to_text(states: States) -> str:
    """``states`` as JSON. Of more than ``MOST_KEPT`` instances, those that fire come first."""
    order = list(State)
    every = sorted(states.each(), key=lambda each: (each[2].state is not State.FIRING, order.index(each[2].state)))
    return _States(
        at=states.at,
        instances=[
            _Instance(
                alert=alert,
                labels=dict(labels),
                state=each.state,
                value=each.value if math.isfinite(each.value) else None,
                active_at=each.active_at,
                fired_at=each.fired_at,
                keep_firing_since=each.keep_firing_since,
                resolved_at=each.resolved_at,
            )
            for alert, labels, each in every[:MOST_KEPT]
        ],
    ).model_dump_json()


def from_text(text: str | bytes) -> States:
    """The states that ``to_text`` wrote. Raises ``ForeignStatesError`` for anything else."""
    try:
        read = _States.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"][:3])
        raise ForeignStatesError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    instances: dict[str, dict[frozenset[tuple[str, str]], Instance]] = {}
    for each in read.instances:
        if _is_whole(each):
            instances.setdefault(each.alert, {})[frozenset(each.labels.items())] = Instance(
                state=each.state,
                value=math.nan if each.value is None else each.value,
                active_at=each.active_at,
                fired_at=each.fired_at,
                keep_firing_since=each.keep_firing_since,
                resolved_at=each.resolved_at,
            )
    return States(at=read.at, instances=instances)


def _is_whole(each: _Instance) -> bool:
    """Whether it has the times that its state needs."""
    fired = each.state is State.PENDING or each.fired_at is not None
    return fired and (each.state is not State.RESOLVED or each.resolved_at is not None)
