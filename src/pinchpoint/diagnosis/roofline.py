"""How near the engine is to what its model and its cards can do: the roofline of the actual shapes and peaks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Over the window; ``None`` is unknown (no model shape, no published peaks, no step counter).

    Peaks are published ones, without any efficiency: real engines reach 0.5 to 0.85 of the bandwidth and 0.4 to 0.6 of
    the dense FLOPs.
    """

    step_seconds: float | None = None  # time per engine step while requests run
    roofline_step_seconds: float | None = None  # the same at peak: the longest of compute and memory
    roofline_ratio: float | None = None  # roofline over observed: 1 is as fast as this card goes
    memory_bandwidth_utilization_ratio: float | None = None  # bytes that had to be moved, of the peak
    roofline_compute_share: float | None = None  # compute over compute and memory time at peak: which one paces
