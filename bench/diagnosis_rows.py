"""One world of the bench: its truth, and what each judge says who sees nothing but its recording."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from errno import EINVAL
from pathlib import Path

from bench.vllm_doctor import Doctor
from pinchpoint.capacity import judge_scaling
from pinchpoint.diagnosis import Thresholds, judge_recording
from pinchpoint.simulator import write_recording
from pinchpoint.simulator.truth import SECONDS, WARM_UP_SECONDS, Truth, truth_of, world_of
from pinchpoint.snapshot import GpuReading, Snapshot
from pinchpoint.sources.recording import RecordingError, read_recording

FULL = "everything"
_GPM = ("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio", "profile_stuck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was said of a recording. ``named`` are the classes that count as its first answer, ``others`` those that
    count as its second."""

    named: tuple[str, ...]
    others: tuple[str, ...] = ()
    confidence: float | None = None
    more_gpus_help: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``answers`` by judge: pinchpoint by what it was shown, and the peer."""

    name: str
    story: str
    truth: Truth
    answers: Mapping[str, Answer] = field(default_factory=dict)


def row(
    seed: int | None, folder: Path, truth: Truth | None, ablate: bool, doctor: Doctor | None, play: bool = True
) -> Row:
    """Judges the world of ``seed`` or, without ``play``, what lies in ``folder`` already. A truth that is known is not
    sought again."""
    story = ""
    if seed is not None and play:
        world = world_of(seed)
        story = world.story
        shutil.rmtree(folder, ignore_errors=True)  # of another simulator
        write_recording(folder, world, SECONDS, warm_up_seconds=WARM_UP_SECONDS)
        truth = truth or truth_of(world)
    assert truth is not None
    story = story or _note(folder / "meta.json")
    answers = dict(_answers(folder, ablate))
    if doctor is not None:
        answers[doctor.name] = Answer(**doctor.examine(folder))
    return Row(name=folder.name, story=story, truth=truth, answers=answers)


def _note(meta: Path) -> str:
    try:
        return str(json.loads(meta.read_text()).get("note", ""))
    except (ValueError, AttributeError):
        raise OSError(EINVAL, "no JSON object; remove its folder", str(meta)) from None


def _answers(folder: Path, ablate: bool) -> Mapping[str, Answer]:
    try:
        recording = read_recording(folder)
    except RecordingError:  # not one scrape
        return {name: Answer(named=("no_data",), confidence=1.0) for name in (ABLATIONS if ablate else (FULL,))}
    assert recording.service is not None
    shown = ABLATIONS if ablate else {FULL: ABLATIONS[FULL]}
    return {name: _answer(without(recording.snapshots), recording.service) for name, without in shown.items()}


def _answer(snapshots: tuple[Snapshot, ...], service: str) -> Answer:
    diagnosis = judge_recording(snapshots, service, Thresholds()).diagnosis
    return Answer(
        named=(str(diagnosis.bottleneck),),
        others=() if diagnosis.runner_up is None else (str(diagnosis.runner_up),),
        confidence=round(diagnosis.confidence_ratio, 3),
        more_gpus_help=judge_scaling(diagnosis).more_gpus_help,
    )


_Without = Callable[[tuple[Snapshot, ...]], tuple[Snapshot, ...]]


def _everything(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    return snapshots


def _without_gpm(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    nothing = dict.fromkeys(_GPM)
    known: dict[int, GpuReading] = {}  # a reading stays one object for as long as it holds

    def bare(reading: GpuReading) -> GpuReading:
        return known.setdefault(id(reading), replace(reading, **nothing))  # type: ignore[arg-type]

    return tuple(replace(snapshot, gpus=tuple(bare(gpu) for gpu in snapshot.gpus)) for snapshot in snapshots)


def _without_gpus(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    return tuple(replace(snapshot, gpus=(), links=()) for snapshot in snapshots)


def _without_host(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    return tuple(replace(snapshot, host=None) for snapshot in snapshots)


def _without_probes(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    return tuple(replace(snapshot, probes=(), probe_totals=(), comparisons=()) for snapshot in snapshots)


# What is known of the engine from its operator (model, card, flags) stays in all of them.
ABLATIONS: Mapping[str, _Without] = {
    FULL: _everything,
    "without GPM": _without_gpm,
    "without GPU data": _without_gpus,
    "without host data": _without_host,
    "without probe data": _without_probes,
}
