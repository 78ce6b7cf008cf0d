"""A watcher that runs against a fake API server, and what it has said."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.kubernetes import KubernetesSettings, KubernetesWatcher
from pinchpoint.sources.discovery.kubernetes.watcher import SETTLE_SECONDS
from pinchpoint.sources.engine import EngineSettings
from pinchpoint.sources.http import SourceError
from pinchpoint.sources.http.client import HttpClient
from tests.fakes.kubernetes_api import FakeKubernetes


def build(values: Mapping[str, object]) -> EngineTarget:
    return EngineSettings.model_validate(values).target()


@dataclass(slots=True)
class Following:
    task: asyncio.Task[None] | None = None
    said: list[Finding | SourceError] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    @property
    def last(self) -> Finding | SourceError | None:
        return self.said[-1] if self.said else None

    @property
    def engines(self) -> list[str]:
        """Names in the last list."""
        lists = [said for said in self.said if isinstance(said, Finding)]
        return [target.engine for target in lists[-1].targets] if lists else []

    @property
    def failure(self) -> SourceError | None:
        return self.last.failure if isinstance(self.last, Finding) else self.last

    async def until(self, holds: Callable[[], bool], seconds: float = 10) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                if self.task is not None and self.task.done():
                    self.task.result()  # a defect
                await asyncio.sleep(0.001)

    async def until_engines(self, names: Iterable[str]) -> None:
        wanted = set(names)
        try:
            await self.until(lambda: set(self.engines) == wanted)
        except TimeoutError:
            raise AssertionError(f"{set(self.engines)} is not {wanted}; {self.failure}") from None

    @property
    def failures(self) -> list[SourceError]:
        """All that were ever said."""
        failures = [said.failure if isinstance(said, Finding) else said for said in self.said]
        return [failure for failure in failures if failure is not None]

    async def until_failure(self) -> SourceError:
        """The first failure that was said."""
        await self.until(lambda: bool(self.failures))
        return self.failures[0]

    async def until_well(self) -> None:
        await self.until(lambda: isinstance(self.last, Finding) and self.last.failure is None)


@asynccontextmanager
async def following(
    api: FakeKubernetes,
    *,
    silence_seconds: float = 60.0,
    environment: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
    build: Callable[[Mapping[str, object]], EngineTarget] = build,
    **given: Any,
) -> AsyncIterator[Following]:
    """Time passes at once where the watcher would wait between two attempts; what it waited for is in ``slept``."""
    settings = KubernetesSettings(
        enabled=True, api_server=api.url, **({"service_account": api.account} if api.account else {}), **given
    )
    follows = Following()

    async def sleep(seconds: float) -> None:
        follows.slept.append(seconds)
        await asyncio.sleep(0 if seconds == SETTLE_SECONDS else 0.001)  # so that each failure is told before it is over

    async with HttpClient() as client:
        watcher = KubernetesWatcher(
            settings,
            Ground(client=client, build=build, now=clock),
            chance=lambda: 0.5,
            sleep=sleep,
            environment=environment if environment is not None else {"NODE_NAME": "node-a"},
            silence_seconds=silence_seconds,
        )
        follows.task = asyncio.create_task(watcher.watch(follows.said.append))
        try:
            yield follows
            assert not follows.task.done()
        finally:
            follows.task.cancel()
            await asyncio.wait([follows.task])
