"""One target's prober: sends one synthetic request and returns one reading, whatever happens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.request import getproxies_environment

import aiohttp
import structlog

from pinchpoint.snapshot import ProbeOutcome, ProbeReading
from pinchpoint.sources.probe import prompt
from pinchpoint.sources.probe.dialects import DIALECTS, Parameters
from pinchpoint.sources.probe.error_body import parse_json
from pinchpoint.sources.probe.exchange import Exchange, Request, fetch, stream
from pinchpoint.sources.probe.judgement import Judgement, judge
from pinchpoint.sources.probe.reading import blank_reading, reading
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.timing import timing
from pinchpoint.sources.probe.tracing import trace_config

log = structlog.get_logger(__name__)

MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024  # an aggregator lists hundreds of models
MAX_KEY_BYTES = 16 * 1024
SPARE_KEEPALIVE_SECONDS = 15.0


class _RefusedError(Exception):
    """The probe can't be sent, for a reason that is a result: the judgement says which."""

    def __init__(self, judgement: Judgement, exchange: Exchange | None = None) -> None:
        super().__init__(judgement.outcome)
        self.judgement = judgement
        self.exchange = exchange


class Prober:
    """Probes one target. Owns one HTTP session, and remembers which URL and which parameters the server accepts.

    ``clock`` gives the reading's ``at`` (seconds); durations come from ``perf_counter_ns``. ``loop_lag`` tells the
    largest lag of the event loop since a moment of ``clock``, in seconds: latencies measured by a loop that was late
    are dropped. Is not: a scheduler, a counter of results or a keeper of the last one.
    """

    def __init__(
        self,
        settings: ProbeTargetSettings,
        clock: Callable[[], float] = time.monotonic,
        nonce: Callable[[], str] = prompt.nonce,
        loop_lag: Callable[[float], float] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._nonce = nonce
        self._loop_lag = loop_lag
        self._session: aiohttp.ClientSession | None = None
        self._dialect = DIALECTS[settings.dialect](settings.api_version)
        self._parameters = Parameters.of(settings)
        self._model = settings.model
        self._root: str | None = None
        self._last_outcome: ProbeOutcome | None = None

    async def probe(self) -> ProbeReading:
        """Send one request and judge it. Raises nothing but ``CancelledError``: such a probe has no result."""
        at = self._clock()
        try:
            result = await self._probe(at)
        except Exception as error:
            # The one guard of a runner: a defect here must not end the daemon's other jobs.
            log.exception("probe failed by a defect", target=self._settings.name)
            result = blank_reading(self._settings, at, ProbeOutcome.INTERNAL, type(error).__name__)
        self._log_change(result)
        return result

    async def close(self) -> None:
        """Close the connections. The prober can be used again afterwards."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _probe(self, at: float) -> ProbeReading:
        key = ""
        try:
            key = await self._key()
            exchange, judgement = await self._converse(key)
        except _RefusedError as refused:
            if refused.exchange is None:
                return blank_reading(self._settings, at, refused.judgement.outcome, refused.judgement.message, (key,))
            exchange, judgement = refused.exchange, refused.judgement
        if judgement.outcome is ProbeOutcome.MODEL_NOT_FOUND:
            self._model = self._settings.model  # a listed model that is gone: ask for the list again next time
        lag = self._loop_lag(at) if self._loop_lag is not None else 0.0
        times = timing(exchange.stamps, exchange.transcript, lag)
        return reading(self._settings, at, exchange, judgement, times, (key,))

    async def _converse(self, key: str) -> tuple[Exchange, Judgement]:
        headers = self._dialect.headers(key)
        if self._model is None:
            self._model = await self._first_model(headers)
        model, text = self._model, prompt.build(self._nonce(), self._settings.prompt_words)

        async def ask_at(root: str) -> tuple[Exchange, Judgement]:
            url = self._dialect.request_url(root, model)
            while True:
                body = self._dialect.body(model, text, self._parameters)
                request = Request(url=url, headers=headers, body=body, proxy=self._settings.proxy)
                exchange = await self._fresh(
                    partial(stream, request, self._settings.deadlines, self._dialect.interpret)
                )
                judgement = judge(exchange)
                repaired = None
                if judgement.outcome is ProbeOutcome.BAD_REQUEST and exchange.status in (400, 422):
                    repaired = self._dialect.repaired(self._parameters, judgement.facts.text)
                if repaired is None:
                    return exchange, judgement
                log.info("server refuses a parameter, sending without it", target=self._settings.name)
                self._parameters = repaired

        return await self._at_any_root(ask_at)

    async def _first_model(self, headers: Mapping[str, str]) -> str:
        """The first model that the server lists. Raises ``_RefusedError`` when there is no such list."""

        async def list_at(root: str) -> tuple[Exchange, Judgement]:
            url = self._dialect.models_url(root)
            request = Request(url=url, headers=headers, proxy=self._settings.proxy)
            exchange = await self._fresh(partial(fetch, request, self._settings.deadlines, MAX_MODEL_LIST_BYTES))
            if exchange.status != 200:
                return exchange, judge(exchange)
            if self._listed_model(exchange.body) is not None:
                return exchange, Judgement(outcome=ProbeOutcome.OK)
            said = f"no model is listed at {request.url}: {exchange.body}"
            return exchange, Judgement(outcome=ProbeOutcome.MODEL_NOT_FOUND, message=said, wrong_path=True)

        exchange, judgement = await self._at_any_root(list_at)
        model = self._listed_model(exchange.body)
        if judgement.outcome is not ProbeOutcome.OK or model is None:
            raise _RefusedError(judgement, exchange)
        return model

    async def _at_any_root(
        self, send: Callable[[str], Awaitable[tuple[Exchange, Judgement]]]
    ) -> tuple[Exchange, Judgement]:
        """The answer at the first URL shape that this API has, which is remembered; else that at the likeliest."""
        first: tuple[Exchange, Judgement] | None = None
        for root in (self._root,) if self._root is not None else self._dialect.roots(self._settings.url):
            exchange, judgement = await send(root)
            if not judgement.wrong_path:
                self._root = root if exchange.status is not None else self._root
                return exchange, judgement
            first = first or (exchange, judgement)
        self._root = None
        assert first is not None  # there is always a candidate
        return first

    async def _fresh(self, send: Callable[[aiohttp.ClientSession], Awaitable[Exchange]]) -> Exchange:
        """Send; once more on a new connection when an idle one was closed meanwhile: no fault of the server."""
        exchange = await send(self._open_session())
        if exchange.failure is ProbeOutcome.RESET and exchange.stamps.reused:
            await self.close()
            exchange = await send(self._open_session())
        return exchange

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            if self._settings.proxy is None and getproxies_environment():
                log.debug("proxy variables of the environment are not used for probes", target=self._settings.name)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=self._settings.interval_seconds + SPARE_KEEPALIVE_SECONDS
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the deadlines are ours
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "Accept": "text/event-stream, application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": "pinchpoint",
                },
                trace_configs=[trace_config()],
            )
        return self._session

    async def _key(self) -> str:
        """The bearer token, ``""`` for none. Raises ``_RefusedError`` when its file can't be read."""
        path = self._settings.api_key_file
        try:
            if path is not None:
                async with asyncio.timeout(self._settings.deadlines.connect):
                    key = await asyncio.to_thread(_read_key, path)
            else:
                key = self._settings.api_key.get_secret_value() if self._settings.api_key is not None else ""
        except OSError as error:
            cause = f"api_key_file {path}: {error.strerror or type(error).__name__}"
            raise _RefusedError(Judgement(outcome=ProbeOutcome.AUTH, message=cause)) from None
        if not (key.isascii() and key.isprintable()):
            raise _RefusedError(
                Judgement(outcome=ProbeOutcome.AUTH, message="the key holds characters that no key has")
            )
        return key

    def _listed_model(self, body: str | None) -> str | None:
        return next(iter(self._dialect.listed_models(parse_json(body or ""))), None)

    def _log_change(self, result: ProbeReading) -> None:
        """One line when the outcome changes, none while it stays."""
        before, self._last_outcome = self._last_outcome, result.outcome
        if result.outcome is before:
            return
        if result.outcome is not ProbeOutcome.OK:
            log.warning(
                "probe fails",
                target=result.target,
                outcome=result.outcome.value,
                detail=result.detail,
                remedy=result.remedy,
            )
        elif before is not None:
            log.info("probe is fine again", target=result.target)


def _read_key(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_KEY_BYTES).decode("utf-8", errors="replace").strip()
