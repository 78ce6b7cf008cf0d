"""The scrapes of a recording: a folder of ``*.prom`` files becomes one engine's readings, folders one service's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pinchpoint.snapshot import Absence, EngineReading, EngineTarget, Reason
from pinchpoint.sources.engine import KINDS, EpochTracker, Recall, as_kind, reading_from_body
from pinchpoint.sources.http import SourceError
from pinchpoint.sources.recording.failure import RecordingError
from pinchpoint.sources.recording.files import read_bytes
from pinchpoint.sources.recording.stamp import read_stamp

MAX_SCRAPES = 100_000  # a day at one a second
MAX_SCRAPE_BYTES = 16 * 2**20

Observed = EngineReading | Absence


def scrape_files(folder: Path, *, may_be_none: bool = False) -> dict[str, Path]:
    """The ``*.prom`` files of ``folder`` by name, in name order. Raises ``RecordingError`` when some are needed."""
    try:
        files = {path.name: path for path in sorted(folder.glob("*.prom")) if path.is_file()}
    except OSError as error:
        raise RecordingError(folder, f"can't be read ({error.strerror})") from None
    if not files and not may_be_none:
        raise RecordingError(folder, "holds no *.prom file; give the folder that the scrapes lie in")
    if len(files) > MAX_SCRAPES:
        raise RecordingError(folder, f"holds {len(files)} scrapes, more than {MAX_SCRAPES}; split it")
    return files


def steps_of(folder: Path, names: Iterable[str], *, numbered: bool) -> tuple[str, ...]:
    """The names of every step in order: those that are there or, where a name is a step's number, the missing ones too.

    Raises ``RecordingError`` on a name that is no number.
    """
    if not numbered:
        return tuple(sorted(set(names)))
    found: dict[int, str] = {}
    for name in names:
        number = name.removesuffix(".prom")
        if not (number.isascii() and number.isdigit()):
            cause = 'meta.json says "numbered", but a scrape\'s name is no number; rename or remove it'
            raise RecordingError(folder / name, cause)
        if int(number) >= MAX_SCRAPES:
            raise RecordingError(folder / name, f"its number is beyond 0 to {MAX_SCRAPES - 1}; split the recording")
        found[int(number)] = name
    last = max(found, default=-1)
    return tuple(found.get(number, f"{number:06d}.prom") for number in range(last + 1))


def read_engine(
    target: EngineTarget, files: Mapping[str, Path], steps: Sequence[str], step_seconds: float, *, stamped: bool
) -> tuple[Observed, ...]:
    """One engine's reading of each step; an ``Absence`` where its scrape is missing or makes no sense.

    A reading's time is that of its step or, when ``stamped``, the one that its recorder wrote into it.
    """
    epochs, recall = EpochTracker(), Recall()
    said = target.facts.kind
    # The kind is no guide to the names: a recorder writes what it read of any engine in vLLM's. But where there is
    # nothing to read, it says that nothing was expected.
    target = replace(target, facts=replace(target.facts, kind=said if said == "openai" else ""))

    def read(number: int, step: str) -> Observed:
        at = number * step_seconds
        if step not in files:
            return Absence(
                f"engine/{target.engine}", Reason.STALE, f"{target.engine}: no scrape {step} was recorded", at
            )
        try:
            body = read_bytes(files[step], MAX_SCRAPE_BYTES)
            stamp = read_stamp(body)
            at = stamp.at if stamp and stamped else at
            if stamp and stamp.absent:
                return Absence(f"engine/{target.engine}", stamp.absent, stamp.detail, at)
            reading = epochs.stamp(reading_from_body(target, body, None, at, recall))
            return as_kind(reading, KINDS[said]) if said in KINDS else reading
        except SourceError as error:
            return Absence(f"engine/{target.engine}", error.reason, f"{files[step].name}: {error.detail}", at)

    return tuple(read(number, step) for number, step in enumerate(steps))


def read_service(target: EngineTarget, parts: Mapping[str, Sequence[Observed]]) -> tuple[Observed, ...]:
    """The engines behind one balancer as one engine whose replicas are all of theirs.

    A part that is absent lends no replica and a warning; when all are, so is the service. Replica names stay unique by
    their engine's name in front.
    """
    epochs: dict[str, str] = {}

    def join(step: Mapping[str, Observed]) -> Observed:
        present = {name: seen for name, seen in step.items() if isinstance(seen, EngineReading)}
        at = next(iter(step.values())).at
        if not present:
            return Absence(
                f"engine/{target.engine}", Reason.STALE, f"{target.engine}: none of its engines answered", at
            )
        epochs.update({name: reading.epoch for name, reading in present.items()})
        first = next(iter(present.values()))
        return EngineReading(
            engine=target.engine,
            at=at,
            replicas=tuple(
                replace(replica, replica=f"{name}/{replica.replica}")
                for name, reading in present.items()
                for replica in reading.replicas
            ),
            facts=replace(first.facts, data_parallel_size=target.facts.data_parallel_size),
            slo=target.slo,
            gpus=target.gpus,
            epoch=";".join(f"{name}={epoch}" for name, epoch in sorted(epochs.items())),
            warnings=tuple(f"{name} is absent" for name in step if name not in present)
            + tuple(f"{name}: {warning}" for name, reading in present.items() for warning in reading.warnings),
        )

    names = tuple(parts)
    return tuple(join(dict(zip(names, step, strict=True))) for step in zip(*parts.values(), strict=True))
