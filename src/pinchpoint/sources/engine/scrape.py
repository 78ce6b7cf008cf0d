"""The scraper of one engine: /metrics, with /health and /version beside it. Failure is data."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import structlog

from pinchpoint.snapshot import Absence, EngineReading, EngineTarget, Reason
from pinchpoint.sources.engine.epoch import EpochTracker
from pinchpoint.sources.engine.reading import reading_from_body
from pinchpoint.sources.engine.settings import EngineSourceSettings
from pinchpoint.sources.http import Answer, HttpClient, SourceError

THREAD_ABOVE_BYTES = 100_000  # about 6 ms of parsing: more would hold up the event loop
VERSION_REFRESH_SECONDS = 600.0  # a restart is asked about at once; this is for one that went unseen
MAX_SMALL_BODY_BYTES = 4096  # /health and /version

_log = structlog.get_logger(__name__)


class EngineScraper:
    """Scrapes one target, one scrape at a time, and remembers what it needs between two: version and epoch."""

    def __init__(self, target: EngineTarget, client: HttpClient, settings: EngineSourceSettings | None = None) -> None:
        self.target = target
        self.source = f"engine/{target.engine}"
        self._client = client
        self._settings = settings if settings is not None else EngineSourceSettings()
        self._one_in_flight = asyncio.Lock()
        self._epochs = EpochTracker()
        self._epoch: str | None = None
        self._version: str | None = None
        self._version_asked_at: float | None = None
        self._lost: Reason | None = None

    async def scrape(self, now: Callable[[], float]) -> EngineReading | Absence:
        """One reading, or why there is none. Takes at most ``timeout_seconds`` and raises only ``CancelledError``.

        ``now`` is the caller's monotonic clock, seconds; the reading's ``at`` is when the answer's head arrived.
        """
        async with self._one_in_flight:
            try:
                reading = await self._read(now)
            except SourceError as error:
                return self._absent(error.reason, error.detail, now())
            except Exception as error:  # noqa: BLE001 - the guard of this source: a defect costs one reading, not the daemon
                if self._lost is not Reason.ERROR:  # once, not at every scrape
                    _log.exception("scrape failed by a defect", engine=self.target.engine)
                return self._absent(
                    Reason.ERROR, f"a defect of pinchpoint ({type(error).__name__}); see its log", now()
                )
            self._present()
            return reading

    async def _read(self, now: Callable[[], float]) -> EngineReading:
        metrics, health, _ = await asyncio.gather(
            self._get(self.target.metrics_path, self._settings.max_body_bytes, now),
            self._get("/health", MAX_SMALL_BODY_BYTES, now),
            self._refresh_version(now),
            return_exceptions=True,
        )
        if isinstance(metrics, BaseException):
            raise metrics
        _require_ok(metrics)
        # Only 503 speaks: other servers have no /health, or let it fail when they are busy.
        if isinstance(health, Answer) and health.status == 503:
            raise SourceError(
                Reason.ENGINE_DEAD, "/health answers 503: the engine core died, its metrics are frozen; restart it"
            )
        arguments = (self.target, metrics.body, metrics.content_type, metrics.at)
        if len(metrics.body) > THREAD_ABOVE_BYTES:
            reading = await asyncio.to_thread(reading_from_body, *arguments)
        else:
            reading = reading_from_body(*arguments)
        reading = self._epochs.stamp(reading)
        if self._epoch not in (None, reading.epoch):
            self._version_asked_at = None
            _log.info("engine restarted", engine=self.target.engine)
        self._epoch = reading.epoch
        return replace(reading, facts=replace(reading.facts, version=self._version or reading.facts.version))

    async def _get(self, path: str, max_body_bytes: int, now: Callable[[], float]) -> Answer:
        return await self._client.fetch(
            self.target.url + path,
            timeout_seconds=self._settings.timeout_seconds,
            max_body_bytes=max_body_bytes,
            access=self.target.access,
            now=now,
        )

    async def _refresh_version(self, now: Callable[[], float]) -> None:
        """Asks for the engine's version at the start, after a restart and every ten minutes."""
        if self._version_asked_at is None or now() - self._version_asked_at > VERSION_REFRESH_SECONDS:
            self._version_asked_at = now()
            answer = await self._get("/version", MAX_SMALL_BODY_BYTES, now)
            self._version = _version_in(answer.body)

    def _absent(self, reason: Reason, detail: str, at: float) -> Absence:
        detail = f"engine {self.target.engine} at {self.target.url}: {detail}"
        if reason is not self._lost:
            _log.warning("engine lost", engine=self.target.engine, reason=reason.value, detail=detail)
        self._lost = reason
        return Absence(self.source, reason, detail, at)

    def _present(self) -> None:
        if self._lost is not None:
            _log.info("engine back", engine=self.target.engine, after=self._lost.value)
        self._lost = None


def _require_ok(answer: Answer) -> None:
    if answer.status in (401, 403):
        raise SourceError(
            Reason.UNAUTHORIZED,
            f"HTTP {answer.status}; vLLM leaves /metrics open, so a proxy asks: set bearer_token_file",
        )
    if answer.status != 200:
        raise SourceError(Reason.HTTP_STATUS, f"HTTP {answer.status}; check metrics_path and the engine's log")


def _version_in(body: bytes) -> str | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    version = answer.get("version") if isinstance(answer, dict) else None
    return version if isinstance(version, str) and version.isprintable() and 0 < len(version) <= 64 else None
