"""The HTTP client of whoever asks by GET or tells by POST: one pool, with each target's credentials and TLS."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import aiohttp
import structlog
from yarl import URL

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.http.answer import Answer, read_answer, redirected
from pinchpoint.sources.http.connector import BoundedConnector
from pinchpoint.sources.http.failure import SourceError, failure
from pinchpoint.sources.http.resolver import Resolver
from pinchpoint.sources.http.ticket import OPEN, Ticket, Tickets

MAX_REDIRECTS = 3
MAX_CONNECTIONS = 256  # busy at one time; a process may often have but 1024 files
MAX_CONNECTIONS_PER_HOST = 16  # and port: behind a gateway, one target that hangs leaves room for its neighbours
KEEPALIVE_SECONDS = 75.0  # an idle connection outlives the longest usual interval of 60 s; most servers end it before
DNS_CACHE_SECONDS = 30

_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy"})

# Compression would cost time on the engine's own event loop, so it is not asked for.
EXPOSITION = {"Accept": "text/plain; version=0.0.4", "Accept-Encoding": "identity"}
JSON = {"Accept": "application/json", "Accept-Encoding": "identity"}
POSTED_JSON = {**JSON, "Content-Type": "application/json"}

_log = structlog.get_logger(__name__)


class HttpClient:
    """Asks with GET, within an origin, or tells with POST, directly whatever the proxy variables say. Close it after.

    Tokens, passwords and certificates are read from their files in a thread, again when they change, and at once when
    a server refuses them. A request whose idle connection the server had closed meanwhile is sent once more (by
    aiohttp, for GET). Is not: a cache, a browser (no cookies), or a judge of an answer's status.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._resolver: Resolver | None = None
        self._tickets = Tickets()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends every connection. The client can be used again afterwards."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The pool itself, for requests to strangers, which know no credentials."""
        if self._session is None:
            if proxies := [
                name for name in sorted(os.environ) if name.lower() in _PROXY_VARIABLES and os.environ[name]
            ]:
                _log.warning("proxy variables are set and not used: servers are asked directly", variables=proxies)
            self._resolver = Resolver()
            connector = BoundedConnector(
                limit=MAX_CONNECTIONS,
                limit_per_host=MAX_CONNECTIONS_PER_HOST,
                keepalive_timeout=KEEPALIVE_SECONDS,
                resolver=self._resolver,
                ttl_dns_cache=DNS_CACHE_SECONDS,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "pinchpoint"},
                timeout=aiohttp.ClientTimeout(),  # deadlines are ours
            )
        return self._session

    async def fetch(
        self,
        url: str,
        *,
        timeout_seconds: float,
        max_body_bytes: int,
        now: Callable[[], float],
        access: HttpAccess = OPEN,
        headers: Mapping[str, str] = EXPOSITION,
    ) -> Answer:
        """GET ``url``, following up to three redirects within its own origin, which is where credentials may go.

        ``now`` is the caller's monotonic clock, seconds. Any status is an ``Answer``. Raises ``SourceError`` when there
        is none in time, in size or in one piece.
        """
        return await self._let_in(
            url, access, headers, timeout_seconds, now, lambda at, ticket: self._follow(at, ticket, max_body_bytes, now)
        )

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        timeout_seconds: float,
        max_body_bytes: int,
        now: Callable[[], float],
        access: HttpAccess = OPEN,
        headers: Mapping[str, str] = POSTED_JSON,
    ) -> Answer:
        """POST ``body``, which may arrive twice: it is sent again where a kept connection turns out to be closed.

        As ``fetch`` in all else, but that no redirect is followed: it is an ``Answer`` like any other.
        """

        async def tell(at: URL, ticket: Ticket) -> Answer:
            try:
                try:
                    return await self._tell(at, ticket, body, max_body_bytes, now)
                except SourceError as error:
                    if error.reason is not Reason.TRUNCATED:
                        raise
                    return await self._tell(at, ticket, body, max_body_bytes, now)
            except SourceError as error:
                raise ticket.unsaid(error) from None

        return await self._let_in(url, access, headers, timeout_seconds, now, tell)

    async def _let_in(
        self,
        url: str,
        access: HttpAccess,
        headers: Mapping[str, str],
        timeout_seconds: float,
        now: Callable[[], float],
        ask: Callable[[URL, Ticket], Awaitable[Answer]],
    ) -> Answer:
        """The answer to ``ask``, which is asked again with what the files hold by now where the server refuses us."""
        try:
            async with asyncio.timeout(timeout_seconds):
                here = URL(url)
                ticket = await self._tickets.issue(here, access, headers, now())
                try:
                    answer = await ask(here, ticket)
                except SourceError as error:
                    if ticket.context is None or error.reason not in (Reason.TLS, Reason.TRUNCATED):
                        raise
                    renewed = await self._tickets.issue(here, access, headers, now(), at_once=True)
                    if renewed == ticket:
                        raise
                else:
                    if answer.status != 401:
                        return answer
                    renewed = await self._tickets.issue(here, access, headers, now(), at_once=True)
                    if renewed == ticket:
                        return answer
                return await ask(here, renewed)
        except TimeoutError:
            raise SourceError(
                Reason.TIMEOUT, f"no complete answer within {timeout_seconds:g} s; is the server overloaded or hung?"
            ) from None

    @asynccontextmanager
    async def open(
        self,
        url: str,
        *,
        now: float,
        access: HttpAccess = OPEN,
        headers: Mapping[str, str] = EXPOSITION,
        after_refusal: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The head of the answer to one GET, without redirects, for whoever reads the body as it comes.

        No deadline: that is the caller's, and so is asking again ``after_refusal``, which looks at the files at once.
        Raises ``SourceError`` for whatever aiohttp raises, also while the body is read inside.
        """
        ticket = await self._tickets.issue(URL(url), access, headers, now, at_once=after_refusal)
        async with self._ask(URL(url), ticket) as response:
            yield response

    @asynccontextmanager
    async def _ask(
        self, url: URL, ticket: Ticket, method: str = "GET", body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self.session.request(
                method,
                url,
                data=body,
                headers=ticket.headers,
                allow_redirects=False,
                auto_decompress=False,
                ssl=ticket.context if ticket.context is not None else True,
                server_hostname=ticket.server_name,
            ) as response:
                yield response
        except aiohttp.ClientError as error:
            raise failure(error, url.scheme) from None
        except UnicodeError:  # "a..b", or a label of more than 63 characters
            raise SourceError(Reason.DNS, "the host name is none that could resolve; check url") from None

    async def _tell(
        self, url: URL, ticket: Ticket, body: bytes, max_body_bytes: int, now: Callable[[], float]
    ) -> Answer:
        async with self._ask(url, ticket, "POST", body) as response:
            return await read_answer(response, max_body_bytes, now())

    async def _follow(self, here: URL, ticket: Ticket, max_body_bytes: int, now: Callable[[], float]) -> Answer:
        for _ in range(1 + MAX_REDIRECTS):
            try:
                async with self._ask(here, ticket) as response:
                    answer = await read_answer(response, max_body_bytes, now())
                if not answer.location:
                    return answer
                here = redirected(here, answer)
            except SourceError as error:
                raise ticket.unsaid(error) from None
        raise SourceError(
            Reason.HTTP_STATUS, f"more than {MAX_REDIRECTS} redirects; set url (and metrics_path) to the final place"
        )
