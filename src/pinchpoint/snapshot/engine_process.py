"""An engine's process on this host, as the system tells of it."""

from dataclasses import dataclass, field

from pinchpoint.snapshot.engine import EngineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProcess:
    """The process behind an engine's port, with its ancestors' and descendants' part in the engine.

    ``facts`` is what its command line and its log say (no secret is kept). ``pids`` is the process tree of the engine,
    ``pids_by_replica`` the part of each data-parallel rank, where the processes' titles tell it. Numbers are this PID
    namespace's.
    """

    pid: int
    facts: EngineFacts = field(default_factory=EngineFacts)
    pids: tuple[int, ...] = ()
    pids_by_replica: dict[str, tuple[int, ...]] = field(default_factory=dict)
