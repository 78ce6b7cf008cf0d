"""Everything there is to tell at one tick: the one input of every output."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.capacity import Scaling
from pinchpoint.diagnosis.course import Course
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.topology import NodeTopology
from pinchpoint.diagnosis.verdict import Bottleneck, Settled
from pinchpoint.snapshot import SelfReport, Snapshot, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One tick, observed and decided. Immutable, so it is rendered in a thread while the loop goes on.

    ``unix_offset_seconds`` turns a reading's ``at`` into Unix time (``at + unix_offset_seconds``).
    ``class_seconds`` are the seconds each engine has spent in each class since it is watched, ``courses`` tells when it
    was in which, for the last hours; both as far as is remembered of earlier processes.
    """

    snapshot: Snapshot
    window: Window
    self_report: SelfReport
    verdicts: Mapping[str, Settled] = field(default_factory=dict)  # by engine
    scaling: Mapping[str, Scaling] = field(default_factory=dict)  # by engine
    class_seconds: Mapping[tuple[str, Bottleneck], float] = field(default_factory=dict)
    courses: Mapping[str, Course] = field(default_factory=dict)  # by engine
    topology: NodeTopology | None = None  # None: nothing to connect, or nobody knows how
    unix_offset_seconds: float = 0.0
    thresholds: Thresholds = field(default_factory=Thresholds)  # that the verdicts rest on
