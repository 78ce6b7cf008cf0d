"""What Alertmanager is told of one alert: labels, annotations, times, as its API (v2) wants them. Pure."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One alert that fires or has ended. Times are Unix seconds."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: float
    resolved_at: float | None  # None: it fires

    @property
    def key(self) -> Hashable:
        """What Alertmanager knows it by."""
        return frozenset(self.labels.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Everything that fires or has ended lately, as of ``at``, and for how long it is good if no more is heard."""

    at: float
    every: Sequence[Notice]
    valid_seconds: float
    generator_url: str


def body(notices: Notices, some: Sequence[Notice]) -> bytes:
    """``some`` of ``notices`` as the body of a POST to ``/api/v2/alerts``.

    A firing alert always has an ``endsAt``: without, Alertmanager would make up one that a later one can't shorten.
    """
    return json.dumps(
        [
            {
                "labels": dict(each.labels),
                "annotations": dict(each.annotations),
                "startsAt": _time(each.starts_at),
                "endsAt": _time(_end(each, notices)),
                "generatorURL": notices.generator_url,
            }
            for each in some
        ]
    ).encode()


def _end(each: Notice, notices: Notices) -> float:
    """Never before the beginning: Alertmanager refuses that, whatever was done to our clock."""
    if each.resolved_at is not None:
        return max(each.resolved_at, each.starts_at)
    return max(notices.at, each.starts_at) + notices.valid_seconds


def _time(unix_seconds: float) -> str:
    """RFC 3339, in UTC, to the millisecond."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
