"""An engine that exposes nothing: what our own probes and its GPUs tell of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pinchpoint.diagnosis.devices import devices_of
from pinchpoint.diagnosis.rates import mean
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, ProbeOutcome, ProbeReading, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """Over ``probe_window_seconds``: a probe comes every half a minute. ``None`` is unknown.

    ``probe_answer_seconds`` is how long the probe's own answer took from its first token on: what the engine needs for
    a request of that size once it has begun.
    """

    probes_ok: float = 0.0
    probes_failed: float = 0.0
    probe_ttft_seconds: float | None = None  # means of those that succeeded
    probe_tpot_seconds: float | None = None
    probe_answer_seconds: float | None = None
    probe_gpu_utilization_ratio: float | None = None  # of the engine's GPUs
    probe_gpu_resting_share: float | None = None  # of their readings: hardly any work


def is_unmeasured(readings: Sequence[EngineReading]) -> bool:
    """Whether the engine says nothing of its load: no replica has a value of any kind."""
    return bool(readings) and not any(_says_anything(reading) for reading in readings)


def _says_anything(reading: EngineReading) -> bool:
    return any(
        getattr(replica, each.name) not in (None, {}, ())
        for replica in reading.replicas
        for each in fields(replica)
        if each.name not in ("replica", "model")
    )


def probed_of(window: Window, engine: str, declared: tuple[str, ...], thresholds: Thresholds) -> Probed:
    """What is known without the engine's own word."""
    recent = window.last(thresholds.probe_window_seconds)
    oldest = recent.snapshots[-1].at - thresholds.probe_window_seconds if recent.snapshots else 0.0
    probes = [probe for probe in recent.probes_of(engine) if probe.at >= oldest]
    good = [probe for probe in probes if probe.outcome is ProbeOutcome.OK]
    devices = devices_of(recent.snapshots, engine, declared)
    return Probed(
        probes_ok=float(len(good)),
        probes_failed=float(len(probes) - len(good)),
        probe_ttft_seconds=mean([probe.ttft_seconds for probe in good]),
        probe_tpot_seconds=mean([probe.tpot_seconds for probe in good]),
        probe_answer_seconds=mean([_answer_seconds(probe) for probe in good]),
        probe_gpu_utilization_ratio=devices.gpu_utilization_ratio,
        probe_gpu_resting_share=_resting(recent, engine, declared, thresholds),
    )


def _answer_seconds(probe: ProbeReading) -> float | None:
    if probe.duration_seconds is None or probe.ttft_seconds is None:
        return None
    return max(0.0, probe.duration_seconds - probe.ttft_seconds)


def _resting(window: Window, engine: str, declared: tuple[str, ...], thresholds: Thresholds) -> float | None:
    """The share of readings in which none of the engine's GPUs worked: its busiest one is looked at."""
    if not window.snapshots or (not declared and window.snapshots[-1].engine_names() != (engine,)):
        return None
    busiest: dict[float, float] = {}
    for snapshot in window.snapshots:
        used = [
            (gpu.at, gpu.utilization_ratio)
            for gpu in snapshot.gpus
            if gpu.utilization_ratio is not None and (not declared or gpu.gpu in declared)
        ]
        if used:
            busiest[max(at for at, _ in used)] = max(ratio for _, ratio in used)
    return mean([float(ratio < thresholds.gpu_resting_ratio) for ratio in busiest.values()])
