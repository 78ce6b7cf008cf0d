"""What all finders know together: the last good list of each, one engine per name and per exposition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from pinchpoint.snapshot import Absence, DiscoveryReport, EngineTarget, Reason, SourceReport
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.discovery.shard import Shard
from pinchpoint.sources.http.failure import SourceError

MAX_ENGINES = 2000  # watched by one pinchpoint; more is a mistake in a list, or work for several shards
SAID_AT_MOST = 5  # refused items in one line of the log

log = structlog.get_logger(__name__)


class Found:
    """The lists of the finders, in the order of ``keep``: the first one that names an engine has it.

    ``put`` and ``fail`` are the only news. A failure leaves the last good list in force. Logs once on loss and once on
    return, and refusals when they change.
    """

    def __init__(self) -> None:
        self._lists: dict[str, _List] = {}
        self._said_of_merge: tuple[str, ...] = ()

    def keep(self, names: Iterable[str]) -> None:
        """Says which finders there are. What is gone takes its engines with it."""
        self._lists = {name: self._lists.get(name) or _List() for name in names}

    def put(self, name: str, finding: Finding, at: float, duration_seconds: float | None = None) -> bool:
        """A finder's new list; returns whether the engines in it are others than before."""
        if (known := self._lists.get(name)) is None:  # it was ended while it looked
            return False
        known.duration_seconds = duration_seconds
        changed = known.targets != finding.targets
        known.targets = finding.targets
        _say_refused(name, finding.refused, known.refused)
        known.refused = finding.refused
        if finding.failure is not None:
            self._failed(name, known, finding.failure, at)
            return changed
        if known.absence is not None:
            log.info("discovery is back", discovery=name, after=known.absence.reason.value, engines=len(known.targets))
        known.absence, known.succeeded_at = None, at
        return changed

    def fail(self, name: str, error: SourceError, at: float, duration_seconds: float | None = None) -> None:
        """A finder could not look; its last list holds."""
        if (known := self._lists.get(name)) is not None:
            known.duration_seconds = duration_seconds
            self._failed(name, known, error, at)

    def _failed(self, name: str, known: _List, error: SourceError, at: float) -> None:
        known.failures[error.reason] += 1
        kept = f" The last good list stays in force ({len(known.targets)} engines)." if known.has_been_read else ""
        end = "." if kept and not error.detail.endswith((".", "?")) else ""
        detail = f"discovery {name}: {error.detail}{end}{kept}"
        before = known.absence
        if before is None or before.reason is not error.reason:
            log.warning("discovery fails", discovery=name, reason=error.reason.value, detail=detail)
        known.absence = Absence(f"discovery/{name}", error.reason, detail, before.at if before else at)

    def merged(
        self, named: Sequence[EngineTarget], shard: Shard | None = None, unshared: Sequence[str] = ()
    ) -> tuple[EngineTarget, ...]:
        """Every engine to watch: those ``named`` by the configuration first, then those found.

        The same exposition twice is one engine. Of two engines with one name the later is refused, and the log names
        both origins. ``shard`` keeps its part of all but what the ``unshared`` finders found, which see only this host.
        """
        by_name: dict[str, EngineTarget] = {}
        watched: list[EngineTarget] = []
        expositions: set[str] = set()
        refused: list[str] = []
        for target in (*named, *(each for known in self._lists.values() for each in known.targets)):
            exposition = target.url + target.metrics_path
            if exposition in expositions:
                continue
            expositions.add(exposition)
            if (first := by_name.setdefault(target.engine, target)) is not target:
                refused.append(f"{_origin(target)} has the name of {_origin(first)}; make names unique")
            elif shard and target.found_by not in unshared and not shard.has(exposition):
                continue
            elif len(watched) >= MAX_ENGINES:
                refused.append(f"{_origin(target)} is one too many, {MAX_ENGINES} are watched; split them with --shard")
            else:
                watched.append(target)
        _say_refused("all", tuple(refused), self._said_of_merge)
        self._said_of_merge = tuple(refused)
        return tuple(watched)

    def absences(self) -> tuple[Absence, ...]:
        return tuple(known.absence for known in self._lists.values() if known.absence)

    def sources(self, unix_offset: float) -> Iterator[SourceReport]:
        """How each finder fares, as every source does."""
        for name, known in self._lists.items():
            yield SourceReport(
                source=f"discovery/{name}",
                up=known.has_been_read and known.absence is None,
                duration_seconds=known.duration_seconds,
                last_success_timestamp_seconds=None if known.succeeded_at is None else known.succeeded_at + unix_offset,
            )

    def reports(self) -> tuple[DiscoveryReport, ...]:
        return tuple(
            DiscoveryReport(
                discovery=name,
                targets=len(known.targets) if known.has_been_read else None,
                refused=len(known.refused) if known.has_been_read else None,
                failures_total=dict(known.failures),
            )
            for name, known in self._lists.items()
        )


@dataclass(slots=True)
class _List:
    """What one finder said last, and since when it fails."""

    targets: tuple[EngineTarget, ...] = ()
    refused: tuple[str, ...] = ()
    absence: Absence | None = None
    succeeded_at: float | None = None
    duration_seconds: float | None = None
    failures: Counter[Reason] = field(default_factory=Counter)

    @property
    def has_been_read(self) -> bool:
        return self.succeeded_at is not None or bool(self.targets)


def _origin(target: EngineTarget) -> str:
    return f"engine {target.engine} at {target.url} ({target.found_by or 'configuration'})"


def _say_refused(name: str, refused: tuple[str, ...], said: tuple[str, ...]) -> None:
    if refused and refused != said:
        log.warning(
            "engines are refused", discovery=name, refused=len(refused), first=" | ".join(refused[:SAID_AT_MOST])
        )
