"""Everything known at one tick."""

from dataclasses import dataclass

from pinchpoint.snapshot.absence import Absence
from pinchpoint.snapshot.engine import EngineReading
from pinchpoint.snapshot.gpu import GpuReading, PeerLink
from pinchpoint.snapshot.gpu_parts import GpuPod
from pinchpoint.snapshot.host import HostReading
from pinchpoint.snapshot.probe import ProbeReading
from pinchpoint.snapshot.probe_totals import ProbeTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tick: the fresh readings of every source, and an ``Absence`` for each thing that has none.

    A reading stays the same object from tick to tick until its source has a newer one: compare ``at`` to tell.
    ``probes`` is the latest reading of each target. Every engine that is configured or was found is in ``engines`` or,
    by ``engine/NAME``, in ``absences``.
    """

    at: float
    gpus: tuple[GpuReading, ...] = ()
    engines: tuple[EngineReading, ...] = ()
    probes: tuple[ProbeReading, ...] = ()
    probe_totals: tuple[ProbeTotals, ...] = ()
    host: HostReading | None = None
    links: tuple[PeerLink, ...] = ()
    pods: tuple[GpuPod, ...] = ()
    absences: tuple[Absence, ...] = ()

    def engine(self, name: str) -> EngineReading | None:
        return next((reading for reading in self.engines if reading.engine == name), None)

    def absence(self, source: str) -> Absence | None:
        return next((absence for absence in self.absences if absence.source == source), None)

    def engine_names(self) -> tuple[str, ...]:
        """Every engine of this tick, read or absent, in name order."""
        absent = {a.source.removeprefix("engine/") for a in self.absences if a.source.startswith("engine/")}
        return tuple(sorted(absent | {reading.engine for reading in self.engines}))
