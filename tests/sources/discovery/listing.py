"""Lists of engines for finders' tests."""

from collections.abc import Mapping

from pinchpoint.daemon.finding import engine_described
from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.discovery import Ground


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def described_plainly(description: Mapping[str, object]) -> EngineTarget:
    """An engine without any check."""
    return EngineTarget(engine=str(description["name"]), url=str(description["url"]))


def ground(clock: Clock | None = None, **more) -> Ground:
    return Ground(**{"client": None, "build": engine_described, "now": clock or Clock(), **more})


def names(targets) -> list[str]:
    return [target.engine for target in targets]
