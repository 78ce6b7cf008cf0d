"""The real daemon beside the real engine, asked as anybody asks it: over HTTP."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.daemon import RunningDaemon

POLL_SECONDS = 0.5
T = TypeVar("T")
Series = Mapping[tuple[tuple[str, str], ...], float]  # labels, sorted -> value
Exposition = Mapping[str, Series]

# Short intervals, so that a state shows within seconds and not within half a minute; but where engine, clients and
# daemon share two cores, a scrape may take a second. An engine on a CPU has no GPU, so none is read.
CONFIG: Mapping[str, Any] = {
    "discovery": {"interval_seconds": 5},
    "engines": {"interval_seconds": 1, "timeout_seconds": 4, "stale_after_seconds": 8},
    "diagnosis": {"window_seconds": 12, "stall_seconds": 12, "hold_seconds": 3, "idle_seconds": 5},
    "gpu": {"enabled": False},
}
# TTFT 2 s is pinchpoint's default: it suits, for this engine's first token comes within 0.2 s when nobody queues, and
# the queues of the states below take several seconds. TPOT 50 ms is the default for a GPU; two cores that others use
# too take 10 to 70 ms, so the objective is far above, else the machine would be judged and not the state.
SLO = {"ttft_seconds": 2.0, "tpot_seconds": 0.25}
NAME = "tiny"  # what the engine is called once it is named


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What pinchpoint says of one engine at one moment; ``None`` is unknown."""

    at: float
    running: float | None
    waiting: float | None
    kv: float | None
    tokens_per_second: float | None
    bottleneck: str  # of the diagnosis
    exported: str  # the class whose series in /metrics is 1
    confidence: float
    why: str


class Pinchpoint:
    """A running daemon, and what it says of the engine at ``url``."""

    def __init__(self, daemon: RunningDaemon, url: str) -> None:
        self._daemon = daemon
        self._url = url
        self.engine = ""

    async def find(self, seconds: float) -> None:
        """Waits until the engine is in ``/metrics`` though nobody named it, and learns what it is called there."""
        (self.engine,) = await self.until(self.names, "the engine to be found on loopback", seconds)

    def names(self) -> set[str]:
        """What the engine at our address is called; empty while it is not known, or down."""
        infos = self._daemon.samples().get("pinchpoint_engine_info", {})
        return {dict(labels)["engine"] for labels in infos if dict(labels)["url"] == self._url}

    async def name_it(self, config: Path, seconds: float) -> None:
        """Names the engine in the configuration and has that read: what was found makes way for what was named."""
        write_config(config, self._url)
        self._daemon.hang_up()
        await self.until(lambda: self.names() == {NAME}, "the named engine to take the place of the found", seconds)
        self.engine = NAME

    async def until(self, what: Callable[[], T], description: str, seconds: float) -> T:
        """The first true answer of ``what``; raises ``TimeoutError``."""
        deadline = time.monotonic() + seconds
        while not (answer := await asyncio.to_thread(what)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:.0f} s for {description}:\n{self._daemon.log[-3000:]}")
            await asyncio.sleep(POLL_SECONDS)
        return answer

    def series(self, name: str, **labels: str) -> Series:
        """The engine's series of ``pinchpoint_engine_NAME`` now, those that bear ``labels``."""
        return _series(self._daemon.samples(), self.engine, name, labels)

    def total(self, name: str, **labels: str) -> float | None:
        """The sum over replicas; ``None`` when there is no series."""
        return _total(self.series(name, **labels))

    def facts(self) -> Mapping[str, str]:
        """The labels of ``engine_info``."""
        return dict(next(iter(self.series("info")), ()))

    def origins(self) -> Mapping[str, str]:
        """Who said each fact."""
        return {dict(labels)["fact"]: dict(labels)["origin"] for labels in self.series("fact_origin_info")}

    def absent_because(self) -> str:
        """The reason why the engine has no reading; empty when it has one."""
        wanted = {"source": f"engine/{self.engine}", "metric": ""}.items()
        for labels in self._daemon.samples().get("pinchpoint_metric_unavailable", {}):
            if wanted <= dict(labels).items():
                return dict(labels)["reason"]
        return ""

    def verdict(self) -> Mapping[str, Any]:
        """The engine's part of ``/api/v1/diagnosis``."""
        found: Mapping[str, Any] = json.loads(self._daemon.get("/api/v1/diagnosis"))["engines"].get(self.engine, {})
        return found

    def status(self) -> Mapping[str, Any]:
        """The engine's part of ``/api/v1/status``."""
        engines = json.loads(self._daemon.get("/api/v1/status"))["engines"]
        return next((engine for engine in engines if engine["engine"] == self.engine), {})

    def look(self) -> Look:
        verdict, samples = self.verdict(), self._daemon.samples()  # one exposition: all its figures are of one scrape
        return Look(
            at=time.monotonic(),
            running=_total(_series(samples, self.engine, "requests_running")),
            waiting=_total(_series(samples, self.engine, "requests_waiting")),
            kv=max(_series(samples, self.engine, "kv_cache_usage_ratio").values(), default=None),
            tokens_per_second=verdict.get("signals", {}).get("generation_tokens_per_second"),
            bottleneck=verdict.get("class") or "",
            exported=self._exported(samples),
            confidence=verdict.get("confidence") or 0.0,
            why=verdict.get("why") or "",
        )

    def _exported(self, samples: Exposition) -> str:
        series = samples.get("pinchpoint_bottleneck", {})
        shown = [dict(key) for key, value in series.items() if value == 1]
        return next((labels["class"] for labels in shown if labels["engine"] == self.engine), "")

    def still_has(self, engine: str) -> bool:
        """Whether any series in ``/metrics`` is of an engine of that name."""
        return any(("engine", engine) in key for series in self._daemon.samples().values() for key in series)

    def logged(self, text: str) -> bool:
        return any(text in line and self.engine in line for line in self._daemon.log.splitlines())


def _series(samples: Exposition, engine: str, name: str, labels: Mapping[str, str] | None = None) -> Series:
    wanted = {"engine": engine, **(labels or {})}.items()
    found = samples.get(f"pinchpoint_engine_{name}", {})
    return {key: value for key, value in found.items() if wanted <= dict(key).items()}


def _total(series: Series) -> float | None:
    return sum(series.values()) if series else None


def write_config(file: Path, url: str | None = None) -> None:
    """With ``url`` the engine there is named, has an objective of its own, and no other is looked for; without, it has
    to be found."""
    targets = [{"name": NAME, "url": url, "slo": SLO}] if url else []
    file.write_text(json.dumps({**CONFIG, "engines": {**CONFIG["engines"], "targets": targets}}))  # JSON is YAML
