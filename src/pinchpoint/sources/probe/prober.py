"""One target's prober: sends one synthetic request and returns one reading, whatever happens."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

import aiohttp
import structlog

from pinchpoint.snapshot import ProbeLiveness, ProbeOutcome, ProbeReading
from pinchpoint.sources.probe import prompt
from pinchpoint.sources.probe.case import Case, proxy_variables
from pinchpoint.sources.probe.cause import Cause
from pinchpoint.sources.probe.dialects import DIALECTS, Dialect, Parameters
from pinchpoint.sources.probe.error_body import parse_json
from pinchpoint.sources.probe.excerpt import MIN_SECRET
from pinchpoint.sources.probe.exchange import Exchange, Request, fetch, stream
from pinchpoint.sources.probe.judgement import Judgement, judge
from pinchpoint.sources.probe.key import KeyUnusableError, key_of
from pinchpoint.sources.probe.lateness import LoopWatch
from pinchpoint.sources.probe.reading import blank_reading, liveness, reading
from pinchpoint.sources.probe.session import TlsUnusableError, open_session
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.timing import timing

log = structlog.get_logger(__name__)

MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024  # an aggregator lists hundreds of models
MAX_PAUSE_INTERVALS = 2.0  # between two answers; a server that slept longer may have cooled down
MAX_MODEL_NAME = 256  # characters, as in the settings
MAX_MODELS = 2000  # of a list that are kept


class _RefusedError(Exception):
    """The probe can't be sent, for a reason that is a result: the judgement says which."""

    def __init__(self, judgement: Judgement, exchange: Exchange) -> None:
        super().__init__(judgement.outcome)
        self.judgement = judgement
        self.exchange = exchange


class Prober:
    """Probes one target. Owns one HTTP session, and remembers which URL and which parameters the server accepts.

    ``clock`` gives the reading's ``at`` (seconds); durations come from ``perf_counter_ns``. ``watch`` tells how late
    the event loop is, and what a late one has measured is dropped. Several probes may run at one time. ``dialect``
    stands in for the target's own; ``heard`` is told of every answer, by the root of its URL. Is not: a scheduler, a
    counter of results or a keeper of the last one.
    """

    def __init__(
        self,
        settings: ProbeTargetSettings,
        clock: Callable[[], float] = time.monotonic,
        nonce: Callable[[], str] = prompt.nonce,
        watch: LoopWatch | None = None,
        *,
        dialect: Dialect | None = None,
        heard: Callable[[str, Exchange, Judgement], None] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._nonce = nonce
        self._watch = watch if watch is not None else LoopWatch()
        self._session: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()
        self._dialect = dialect or DIALECTS[settings.dialect](settings.api_version)
        self._heard = heard
        self._parameters = Parameters.of(settings)
        self._model = settings.model
        self._root: str | None = None
        self._last_outcome: ProbeOutcome | None = None
        self._last_ok_at: float | None = None

    async def probe(self) -> ProbeReading:
        """Send one request and judge it. Raises nothing but ``CancelledError``: such a probe has no result."""
        at = self._clock()
        try:
            result = await self._probe(at)
        except Exception as error:
            # The one guard of a runner: a defect here must not end the daemon's other jobs.
            log.exception("probe failed by a defect", target=self._settings.name)
            judgement = Judgement(outcome=ProbeOutcome.INTERNAL, message=type(error).__name__)
            result = blank_reading(self._case(judgement), at)
        self._log_change(result)
        return replace(result, first_after_idle=self._was_idle(result))

    async def liveness(self) -> ProbeLiveness:
        """Ask for the list of models instead: free, and in the same words. Raises nothing but ``CancelledError``."""
        at = self._clock()
        try:
            key = await key_of(self._settings)
            exchange, judgement, models = await self._listing(key)
        except (KeyUnusableError, TlsUnusableError) as error:
            return liveness(self._case(_unsent(error)), at)
        except Exception as error:  # the one guard of a runner, as in probe
            log.exception("sign of life failed by a defect", target=self._settings.name)
            judgement = Judgement(outcome=ProbeOutcome.INTERNAL, message=type(error).__name__)
            return liveness(self._case(judgement), at)
        return liveness(self._case(judgement, key), at, exchange, models)

    @property
    def max_tokens(self) -> int:
        """The most tokens that the next request may cost: a server's own minimum may have raised the target's."""
        return self._parameters.max_tokens

    async def close(self) -> None:
        """Close the connections. The prober can be used again afterwards."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _probe(self, at: float) -> ProbeReading:
        with self._watch:
            try:
                key = await key_of(self._settings)
                exchange, judgement = await self._converse(key)
            except (KeyUnusableError, TlsUnusableError) as error:
                return blank_reading(self._case(_unsent(error)), at)
            except _RefusedError as refused:
                exchange, judgement = refused.exchange, refused.judgement
            times = timing(exchange.stamps, exchange.transcript, self._watch.lateness)
        case = self._case(judgement, key)
        if judgement.outcome is ProbeOutcome.MODEL_NOT_FOUND:
            self._model = self._settings.model  # a listed model that is gone: ask for the list again next time
        return reading(case, at, exchange, times)

    def _case(self, judgement: Judgement, key: str = "") -> Case:
        fine = judgement.outcome is ProbeOutcome.OK
        return Case(
            target=self._settings,
            judgement=judgement,
            key=key,
            model=self._model,
            proxy_variables=() if fine else proxy_variables(self._settings.url, os.environ),
        )

    async def _converse(self, key: str) -> tuple[Exchange, Judgement]:
        headers = self._dialect.headers(key)
        if self._model is None:
            self._model = await self._first_model(key)
        model, text = self._model, prompt.build(self._nonce(), self._settings.prompt_words)

        async def ask_at(root: str) -> tuple[Exchange, Judgement]:
            url = self._dialect.request_url(root, model)
            while True:
                body = self._dialect.body(model, text, self._parameters)
                request = self._request(url, headers, body)
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

    def _request(self, url: str, headers: Mapping[str, str], body: Mapping[str, object] | None = None) -> Request:
        settings = self._settings
        return Request(
            url=url, headers=headers, body=body, proxy=settings.proxy, server_name=settings.tls.server_name or None
        )

    async def _first_model(self, key: str) -> str:
        """The first model that the server lists. Raises ``_RefusedError`` when there is none."""
        exchange, judgement, models = await self._listing(key)
        if judgement.outcome is ProbeOutcome.OK and not models:
            judgement = Judgement(
                outcome=ProbeOutcome.MODEL_NOT_FOUND, message="no model is listed", cause=Cause.NO_MODEL_LIST
            )
        if judgement.outcome is not ProbeOutcome.OK:
            raise _RefusedError(judgement, exchange)
        return models[0]

    async def _listing(self, key: str) -> tuple[Exchange, Judgement, tuple[str, ...]]:
        """Asks for the list of models, which costs nothing. Names that are none, or that hold the key, are left out."""
        headers = self._dialect.headers(key)

        async def list_at(root: str) -> tuple[Exchange, Judgement]:
            url = self._dialect.models_url(root)
            request = self._request(url, headers)
            exchange = await self._fresh(partial(fetch, request, self._settings.deadlines, MAX_MODEL_LIST_BYTES))
            if exchange.status != 200:
                return exchange, judge(exchange)
            if self._listed(exchange) is not None:
                return exchange, Judgement(outcome=ProbeOutcome.OK)
            said = f"no list of models at {url}: {exchange.body}"
            return exchange, Judgement(
                outcome=ProbeOutcome.NOT_FOUND, message=said, cause=Cause.NO_MODEL_LIST, wrong_path=True
            )

        exchange, judgement = await self._at_any_root(list_at)
        names = (name for name in self._listed(exchange) or () if _is_name(name, key))
        return exchange, judgement, tuple(islice(names, MAX_MODELS))

    def _listed(self, exchange: Exchange) -> tuple[str, ...] | None:
        return self._dialect.listed_models(parse_json(exchange.body or ""))

    async def _at_any_root(
        self, send: Callable[[str], Awaitable[tuple[Exchange, Judgement]]]
    ) -> tuple[Exchange, Judgement]:
        """The answer at the first URL shape that this API has, which is remembered; else that at the likeliest."""
        first: tuple[Exchange, Judgement] | None = None
        for root in (self._root,) if self._root is not None else self._dialect.roots(self._settings.url):
            exchange, judgement = await send(root)
            if self._heard is not None:
                self._heard(root, exchange, judgement)
            if not judgement.wrong_path:
                self._root = root if exchange.status is not None else self._root
                return exchange, judgement
            first = first or (exchange, judgement)
        self._root = None
        assert first is not None  # there is always a candidate
        return first

    async def _fresh(self, send: Callable[[aiohttp.ClientSession], Awaitable[Exchange]]) -> Exchange:
        """Send; once more on a new connection when an idle one was closed meanwhile: no fault of the server."""
        exchange = await send(await self._open_session())
        if exchange.failure is not ProbeOutcome.RESET or exchange.status is not None or not exchange.stamps.reused:
            return exchange
        async with await open_session(self._settings) as fresh:  # other idle connections may be as dead
            exchange = await send(fresh)
        exchange.resent = True
        return exchange

    async def _open_session(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._session is None:
                if self._settings.proxy is None and (names := proxy_variables(self._settings.url, os.environ)):
                    log.debug("the environment's proxy is not used", target=self._settings.name, variables=names)
                self._session = await open_session(self._settings)
            return self._session

    def _was_idle(self, result: ProbeReading) -> bool:
        """Whether this is the first answer after none, or after a pause."""
        before, ok = self._last_ok_at, result.outcome is ProbeOutcome.OK
        self._last_ok_at = result.at if ok else None
        return ok and (before is None or result.at - before > MAX_PAUSE_INTERVALS * self._settings.interval_seconds)

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


def _is_name(name: str, key: str) -> bool:
    """Whether a listed name can be shown and asked for: the server chooses it, and it becomes a label and a line."""
    return 0 < len(name) <= MAX_MODEL_NAME and name.isprintable() and not (len(key) >= MIN_SECRET and key in name)


def _unsent(error: KeyUnusableError | TlsUnusableError) -> Judgement:
    if isinstance(error, TlsUnusableError):
        return Judgement(outcome=ProbeOutcome.TLS, message=str(error))
    return Judgement(outcome=ProbeOutcome.AUTH, message=str(error), cause=Cause.KEY_UNREADABLE)
