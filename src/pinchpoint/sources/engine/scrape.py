"""The scraper of one engine: /metrics, and after it its health and identity. Failure is data."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from pinchpoint.snapshot import Absence, EngineReading, EngineTarget, HttpAccess, Reason
from pinchpoint.sources.engine.epoch import EpochTracker
from pinchpoint.sources.engine.identity import Identity
from pinchpoint.sources.engine.kinds import KINDS
from pinchpoint.sources.engine.place import Place
from pinchpoint.sources.engine.quirks import with_quirks
from pinchpoint.sources.engine.reading import reading_from_body
from pinchpoint.sources.engine.recall import Recall
from pinchpoint.sources.engine.settings import EngineSourceSettings
from pinchpoint.sources.http import EXPOSITION, Answer, HttpClient, SourceError
from pinchpoint.sources.http.backoff import LONGEST_SECONDS, Backoff

THREAD_ABOVE_BYTES = 100_000  # about 6 ms of parsing: more would hold up the event loop
MAX_HEALTH_BYTES = 4096
SMALL_TIMEOUT_SECONDS = 1.0  # of health and identity: what they add is not worth a late reading

# Where nobody listens, or the core is dead, asking costs nobody anything, and a restart shall be seen soon.
CHEAP_REASONS = frozenset({Reason.CONNECT_REFUSED, Reason.ENGINE_DEAD})
CHEAP_LONGEST_SECONDS = 10.0

ONLY_METRICS_FAIL = (
    "; /health answers 200, so the engine serves and only its metrics are broken "
    "(several API servers with PROMETHEUS_MULTIPROC_DIR on a network file system?)"
)

_log = structlog.get_logger(__name__)


class EngineScraper:
    """Scrapes one target, one request at a time, and remembers what it needs between two: identity and epoch."""

    def __init__(self, target: EngineTarget, client: HttpClient, settings: EngineSourceSettings | None = None) -> None:
        self.target = target
        self.source = f"engine/{target.engine}"
        self._client = client
        self._settings = settings if settings is not None else EngineSourceSettings()
        self._timeout = target.timeout_seconds or self._settings.timeout_seconds
        self._headers = EXPOSITION | ({"Accept-Encoding": "gzip"} if self._settings.gzip else {})
        self._one_in_flight = asyncio.Lock()
        self._backoff = Backoff(self._settings.interval_seconds)
        self._place = Place(target)
        self._epochs = EpochTracker()
        self._recall = Recall()
        self._last: EngineReading | None = None
        self._identity = Identity()
        self._lost: Reason | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the last scrape gave a reading: then the next is likely to be short."""
        return self._last is not None and self._lost is None

    def is_due(self, now: float) -> bool:
        """Whether to scrape, for whoever comes by at every interval: a target that fails is asked less often, and
        one that bears less no more than that."""
        return self._backoff.is_due(now) and self._place.is_due(now)

    async def scrape(self, now: Callable[[], float]) -> EngineReading | Absence:
        """One reading, or why there is none, now. Takes at most ``timeout_seconds``, raises only ``CancelledError``.

        ``now`` is the caller's monotonic clock, seconds; the reading's ``at`` is when the answer's head arrived.
        """
        async with self._one_in_flight:
            began = now()
            deadline = began + self._timeout
            try:
                reading = await self._read(now, deadline)
            except SourceError as error:
                detail = error.detail + await self._life_beside(error.reason, now, deadline)
                return self._absent(error.reason, detail, began, now())
            except Exception as error:  # noqa: BLE001 - the guard of this source: a defect costs one reading, not the daemon
                if self._lost is not Reason.ERROR:  # once, not at every scrape
                    _log.exception("scrape failed by a defect", engine=self.target.engine)
                detail = f"a defect of pinchpoint ({type(error).__name__}); see its log"
                return self._absent(Reason.ERROR, detail, began, now())
            self._present()
            return with_quirks(reading)

    async def _read(self, now: Callable[[], float], deadline: float) -> EngineReading:
        reading = self._epochs.stamp(await self._metrics(now, deadline))
        last, self._last = self._last, reading
        # Others have no /health, let it fail when they are busy (TGI), or generate for it (SGLang).
        if KINDS[reading.facts.kind].dies_by_health and not _shows_life(last, reading):
            health = await self._small("/health", MAX_HEALTH_BYTES, now, deadline)
            if health is not None and health.status == 503:
                raise SourceError(
                    Reason.ENGINE_DEAD, "/health answers 503: the engine core died, its metrics are frozen; restart it"
                )
        if last is not None and last.epoch != reading.epoch:
            self._identity.forget()
            _log.info("engine restarted", engine=self.target.engine)
        await self._identity.refresh(lambda path, most: self._small(path, most, now, deadline), now())
        return replace(reading, facts=self._identity.onto(reading.facts))

    async def _metrics(self, now: Callable[[], float], deadline: float) -> EngineReading:
        """What the exposition says, and it alone; of a server that has none, that it lives."""

        async def get(path: str, max_body_bytes: int | None) -> Answer:
            seconds = round(max(0.05, deadline - now()), 2)  # it is said in the error
            return await self._get(path, max_body_bytes or self._settings.max_body_bytes, now, seconds)

        answer = await self._place.ask(self.target, get, now)
        if isinstance(answer, EngineReading):
            return answer
        _require_ok(answer, self.target.access)
        reading = await self._read_body(answer)
        self._place.recognised(reading)
        return reading

    async def _read_body(self, answer: Answer) -> EngineReading:
        arguments = (self.target, answer.body, answer.content_type, answer.at, self._recall)
        if len(answer.body) > THREAD_ABOVE_BYTES:
            return await asyncio.to_thread(reading_from_body, *arguments)
        return reading_from_body(*arguments)

    async def _small(self, path: str, most: int, now: Callable[[], float], deadline: float) -> Answer | None:
        """A small page of the same server; ``None`` when it does not answer soon: silence of this says nothing."""
        try:
            seconds = max(0.05, min(SMALL_TIMEOUT_SECONDS, deadline - now()))
            return await self._get(path, most, now, seconds)
        except SourceError:
            return None

    async def _get(self, path: str, max_body_bytes: int, now: Callable[[], float], timeout_seconds: float) -> Answer:
        return await self._client.fetch(
            self.target.url + path,
            timeout_seconds=timeout_seconds,
            max_body_bytes=max_body_bytes,
            now=now,
            access=self.target.access,
            headers=self._headers,
        )

    async def _life_beside(self, reason: Reason, now: Callable[[], float], deadline: float) -> str:
        """What to add when only /metrics fails: vLLM's can while requests are served (vLLM issue 49983)."""
        if reason is not Reason.HTTP_STATUS:
            return ""
        health = await self._small("/health", MAX_HEALTH_BYTES, now, deadline)
        return ONLY_METRICS_FAIL if health and health.status == 200 else ""

    def _absent(self, reason: Reason, detail: str, began: float, at: float) -> Absence:
        detail = f"engine {self.target.engine} at {self.target.url}: {detail}"
        if reason is not self._lost:
            _log.warning("engine lost", engine=self.target.engine, reason=reason.value, detail=detail)
        self._lost = reason
        self._backoff.failed(began, CHEAP_LONGEST_SECONDS if reason in CHEAP_REASONS else LONGEST_SECONDS)
        return Absence(self.source, reason, detail, at)

    def _present(self) -> None:
        if self._lost is not None:
            _log.info("engine back", engine=self.target.engine, after=self._lost.value)
        self._lost = None
        self._backoff.succeeded()


def _shows_life(last: EngineReading | None, reading: EngineReading) -> bool:
    """Whether each replica has moved since the last scrape: then nobody need ask whether it lives."""
    if last is None:
        return False
    before = {replica.replica: replica for replica in last.replicas}
    return all(before.get(replica.replica) != replica for replica in reading.replicas)


def _require_ok(answer: Answer, access: HttpAccess) -> None:
    if answer.status in (401, 403):
        with_some = access.bearer_token or access.bearer_token_file or access.basic_username or access.headers
        said = (
            "the credentials are refused; check bearer_token_file, basic_auth or headers, and what they may do"
            if with_some
            else "credentials are asked for; set bearer_token_file, basic_auth or headers (vLLM leaves /metrics open, "
            "so there it is a proxy that asks)"
        )
        raise SourceError(Reason.UNAUTHORIZED, f"HTTP {answer.status}: {said}")
    if answer.status != 200:
        raise SourceError(Reason.HTTP_STATUS, f"HTTP {answer.status}; check metrics_path and the engine's log")
