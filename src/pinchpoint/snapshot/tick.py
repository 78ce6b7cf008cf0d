"""Everything known at one tick."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.absence import Absence
from pinchpoint.snapshot.comparison import ProbeComparison
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
    comparisons: tuple[ProbeComparison, ...] = ()
    host: HostReading | None = None
    links: tuple[PeerLink, ...] = ()
    pods: tuple[GpuPod, ...] = ()
    absences: tuple[Absence, ...] = ()

    # Found once per tick: every engine is asked for by name in every snapshot of the window.
    _engines: Mapping[str, EngineReading] = field(init=False, repr=False, compare=False)
    _absences: Mapping[str, Absence] = field(init=False, repr=False, compare=False)
    _probes: Mapping[str, tuple[ProbeReading, ...]] = field(init=False, repr=False, compare=False)
    _names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        engines = {reading.engine: reading for reading in reversed(self.engines)}
        absences = {absence.source: absence for absence in reversed(self.absences)}
        probes: dict[str, tuple[ProbeReading, ...]] = {}
        for probe in self.probes:
            if probe.engine is not None:
                probes[probe.engine] = (*probes.get(probe.engine, ()), probe)
        absent = {source.removeprefix("engine/") for source in absences if source.startswith("engine/")}
        for name, value in (
            ("_engines", engines),
            ("_absences", absences),
            ("_probes", probes),
            ("_names", tuple(sorted(absent | engines.keys()))),
        ):
            object.__setattr__(self, name, value)

    def engine(self, name: str) -> EngineReading | None:
        return self._engines.get(name)

    def absence(self, source: str) -> Absence | None:
        return self._absences.get(source)

    def probes_of(self, engine: str) -> tuple[ProbeReading, ...]:
        """The latest probe of each target that is said to lead to this engine."""
        return self._probes.get(engine, ())

    def engines_by_name(self) -> Mapping[str, EngineReading]:
        """The engines that were read."""
        return self._engines

    def probed_engines(self) -> Iterable[str]:
        """The engines that a probe of this tick is said to lead to."""
        return self._probes

    def engine_names(self) -> tuple[str, ...]:
        """Every engine of this tick, read or absent, in name order."""
        return self._names
