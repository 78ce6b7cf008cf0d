"""Where one target's exposition is, whether it has any, and how it may be asked: learnt from its answers.

Is not how it is read (that is ``reading``), and not the scraper, which keeps time and counts failures.
"""

from collections.abc import Callable
from dataclasses import replace

import structlog

from pinchpoint.snapshot import EngineReading, EngineTarget, Reason, ReplicaReading
from pinchpoint.sources.engine.kinds import KINDS, PATHS, Get, llamacpp
from pinchpoint.sources.engine.kinds.openai import alive
from pinchpoint.sources.http import Answer, SourceError, json_object

DEFAULT_PATH = "/metrics"
LOOK_AGAIN_SECONDS = 300.0  # for metrics of a server that had none: somebody may have switched them on
BUSY_SECONDS = 60.0  # one that answers nobody while it generates is alive that long after its last answer
MAX_PROPS_BYTES = 2**20  # llama-server's /props: chat templates are in it

_NO_SUCH_PAGE = frozenset({404, 405, 501})
_SILENT = " beside its work: one request at a time, it seems"

_log = structlog.get_logger(__name__)


class Place:
    """What is known of how to ask one target, between two scrapes."""

    def __init__(self, target: EngineTarget) -> None:
        self._target = target
        self._kind = target.facts.kind  # as said, else as recognised
        self._path: str | None = None  # where the exposition was found
        self._last: EngineReading | None = None  # of a server without metrics
        self._looked_at = float("-inf")
        self._has_told = False  # the log that there are none
        self._asked_at = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether this kind of engine bears to be asked again."""
        kind = KINDS.get(self._kind)
        return kind is None or now - self._asked_at >= kind.asked_every_seconds - 0.5

    def recognised(self, reading: EngineReading) -> None:
        """The exposition was read as this."""
        self._kind = reading.facts.kind

    async def ask(self, target: EngineTarget, get: Get, now: Callable[[], float]) -> Answer | EngineReading:
        """The answer that should hold the exposition, or the reading of a server that has none or that sleeps.

        ``target`` is the same endpoint each time, though other facts, objectives and GPUs may be said of it by now.

        Raises ``SourceError``. Of an answer that is no exposition the status, or else the body, says why.
        """
        self._target, self._asked_at = target, now()
        if self._target.facts.kind == "openai" or (self._last and now() - self._looked_at < LOOK_AGAIN_SECONDS):
            return await self._alive(get, now)
        if self._kind == "llamacpp" and not self._target.side_effects:
            asleep = await self._asleep(get, now)
            if asleep is not None:
                return asleep
        self._looked_at = now()
        first: Answer | None = None
        for path in self._paths():
            answer = await get(path, None)
            if answer.status == 200 and answer.body.lstrip()[:1] not in (b"[", b"{"):
                self._path, self._last = path, None
                return answer
            first = first or answer
            if answer.status not in (200, *_NO_SUCH_PAGE):
                break
        assert first is not None  # there is a path
        expected = self._target.facts.kind or self._target.metrics_path != DEFAULT_PATH
        if first.status in _NO_SUCH_PAGE and not expected:
            reading = await self._without_metrics(get, first.status)
            if reading is not None:
                return reading
        self._explain(first)
        return first

    def _paths(self) -> tuple[str, ...]:
        if self._target.metrics_path != DEFAULT_PATH:
            return (self._target.metrics_path,)
        kind = KINDS.get(self._kind)
        paths = PATHS if kind is None else kind.paths
        return (self._path, *(path for path in paths if path != self._path)) if self._path in paths else paths

    async def _alive(self, get: Get, now: Callable[[], float]) -> EngineReading:
        said = self._target.facts.kind == "openai"
        try:
            self._last = await alive(self._target, get, only_by_models=not said)
        except SourceError as error:
            busy = error.reason is Reason.TIMEOUT and self._last and now() - self._last.at < BUSY_SECONDS
            if busy and self._last is not None:
                warnings = (*self._last.warnings, f"it has not answered for {now() - self._last.at:.0f} s{_SILENT}")
                return replace(self._last, at=now(), warnings=warnings)
            self._last = self._last if said else None
            raise
        return self._last

    async def _without_metrics(self, get: Get, status: int) -> EngineReading | None:
        """The reading of a server that has a list of models and no metrics; ``None`` where it is none."""
        try:
            self._last = await alive(self._target, get, only_by_models=True)
        except SourceError as error:
            if error.reason is Reason.UNAUTHORIZED:
                detail = f"no metrics (HTTP {status}), and {error.detail}, or check metrics_path"
                raise SourceError(Reason.UNAUTHORIZED, detail) from None
            return None
        if not self._has_told:
            _log.info(
                "engine has no metrics, it is seen by its probes and GPUs alone",
                engine=self._target.engine,
                status=status,
                remedy="SGLang has them with --enable-metrics, llama-server with --metrics, vLLM always",
            )
        self._has_told = True
        return self._last

    async def _asleep(self, get: Get, now: Callable[[], float]) -> EngineReading | None:
        """A llama-server that sleeps is not woken by a scrape, and its router is not made to load a model.

        /props does neither (tools/server/README.md).
        """
        props = json_object((await get(llamacpp.PROPS_PATH, MAX_PROPS_BYTES)).body)
        if props.get("role") == "router":
            raise SourceError(
                Reason.REFUSED,
                "this is llama.cpp's router: a scrape loads a model and keeps it awake. Name the models' own servers, "
                "set kind to openai, or allow it by side_effects: true with the model in metrics_path",
            )
        if props.get("is_sleeping") is not True:
            return None
        return EngineReading(
            engine=self._target.engine,
            at=now(),
            replicas=(ReplicaReading(awake=False),),
            facts=replace(self._target.facts, kind="llamacpp"),
            slo=self._target.slo,
            gpus=self._target.gpus,
            url=self._target.url,
            warnings=("it sleeps, and a scrape would wake it",),
        )

    def _explain(self, answer: Answer) -> None:
        """Raise where this kind's answer has a cause of its own."""
        kind = KINDS.get(self._kind)
        if answer.status == 501:
            raise SourceError(
                Reason.METRICS_MISSING, "HTTP 501: llama-server runs without its metrics; start it with --metrics"
            )
        if answer.status == 400:
            raise SourceError(
                Reason.HTTP_STATUS,
                "HTTP 400; llama.cpp's router answers so, for it wants to be told a model, which a scrape would load: "
                "name the models' own servers, or set kind to openai",
            )
        if answer.status == 404 and kind is not None:
            raise SourceError(Reason.METRICS_MISSING, f"HTTP 404; {kind.remedy}")
        if answer.status == 200 and kind is None:
            raise SourceError(
                Reason.NOT_EXPOSITION,
                f"JSON, not Prometheus text, at {' and '.join(self._paths())}; check metrics_path",
            )
