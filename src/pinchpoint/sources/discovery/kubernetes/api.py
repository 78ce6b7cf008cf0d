"""The two questions to the API server: a page of a list, and a watch. Bounded in size and time.

A plain HTTP client: these are two GETs that answer with JSON. The package ``kubernetes`` blocks a thread for each watch
and loads models of every type there is, of which this needs a dozen fields. An object is asked for whole, for its
metadata alone has neither address nor ports; it is cut down as soon as it is parsed.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from yarl import URL

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery.kubernetes.cluster import Cluster
from pinchpoint.sources.discovery.kubernetes.pod import Pod, pod_in, version_in
from pinchpoint.sources.discovery.kubernetes.refusal import error_event, refusal, reworded
from pinchpoint.sources.http import JSON, HttpClient, SourceError, json_object

MAX_PAGE_BYTES = 4 << 20  # etcd takes 1.5 MB an object, so that a page of one always fits
MAX_LINE_BYTES = 4 << 20
MAX_REFUSAL_BYTES = 65_536
THREAD_ABOVE_BYTES = 100_000  # parsing more would hold up the event loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which pods are asked for: in one ``namespace``, on one ``node``, with some labels; empty is any."""

    namespace: str = ""
    node: str = ""
    label_selector: str = ""

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" if self.namespace else "/api/v1/pods"

    @property
    def words(self) -> str:
        return f"in namespace {self.namespace}" if self.namespace else "in all namespaces"

    def query(self) -> dict[str, str]:
        # A pod that stops running leaves this selection, and the watch calls that DELETED.
        fields = ["status.phase=Running"] + ([f"spec.nodeName={self.node}"] if self.node else [])
        labels = {"labelSelector": self.label_selector} if self.label_selector else {}
        return {"fieldSelector": ",".join(fields)} | labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some pods of a list, the list's version, and where the next page begins (empty: this is the last)."""

    pods: tuple[Pod, ...]
    version: str
    following: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a watch tells: ADDED, MODIFIED or DELETED with a pod, or BOOKMARK, which is a version and no more."""

    type: str
    version: str
    pod: Pod | None


class ApiServer:
    """Asks one API server as one service account. The client is the caller's, and its to close."""

    def __init__(
        self, cluster: Cluster, client: HttpClient, *, timeout_seconds: float, clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._timeout = timeout_seconds
        self._clock = clock

    async def page(self, scope: Scope, *, limit: int, following: str = "") -> Page:
        """The next ``limit`` pods. Raises ``GoneError`` when ``following`` has expired, and ``SourceError``.

        A list of no version in particular: it is what holds now, which servers since 1.31 answer from memory.
        """
        query = scope.query() | {"limit": str(limit)} | ({"continue": following} if following else {})
        async with self._get(scope, query, "list") as response, self._deadline("the whole list"):
            body = await _body(response, MAX_PAGE_BYTES)
        if len(body) > MAX_PAGE_BYTES:
            raise SourceError(Reason.TOO_LARGE, f"{limit} pods are more than {MAX_PAGE_BYTES} bytes")
        return await asyncio.to_thread(_page, body)

    @asynccontextmanager
    async def watch(self, scope: Scope, version: str, *, seconds: int) -> AsyncIterator["Stream"]:
        """What changes after ``version``, until the server ends it after ``seconds``.

        Raises ``GoneError`` when the server no longer has what came after ``version``, and ``SourceError``.
        """
        query = scope.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        async with self._get(scope, query, "watch") as response:
            yield Stream(response.content, scope)

    @asynccontextmanager
    async def _get(self, scope: Scope, query: dict[str, str], verb: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer 200. Reading its body is the caller's; what goes wrong there is put in our words here."""
        url = str(URL(self._cluster.url).with_path(scope.path).with_query(query))
        for last in (False, True):
            async with self._deadline("an answer") as deadline:
                try:
                    async with self._client.open(
                        url, now=self._clock(), access=self._cluster.access(), headers=JSON, after_refusal=last
                    ) as response:
                        try:
                            if response.status == 401 and not last:  # the token may have been replaced meanwhile
                                continue
                            if response.status != 200:
                                body = await _body(response, MAX_REFUSAL_BYTES)
                                after = response.headers.get("Retry-After", "")
                                raise refusal(response.status, body, after, verb=verb, where=scope.words)
                            deadline.reschedule(None)
                            yield response
                            return
                        finally:
                            if not response.content.is_eof():
                                response.close()
                except SourceError as error:
                    raise reworded(error) from None

    @asynccontextmanager
    async def _deadline(self, awaited: str) -> AsyncIterator[asyncio.Timeout]:
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                yield deadline
        except TimeoutError:
            if not deadline.expired():
                raise
            raise SourceError(
                Reason.TIMEOUT, f"the API server did not send {awaited} within {self._timeout:g} s"
            ) from None


class Stream:
    """The events of one watch, as they come."""

    def __init__(self, content: aiohttp.StreamReader, scope: Scope) -> None:
        self._content = content
        self._scope = scope
        self._rest = b""

    async def next(self, silence_seconds: float) -> tuple[Event, ...] | None:
        """The next events, possibly none yet; ``None`` when the watch is over, in whatever way: the next one goes on.

        Raises ``TimeoutError`` when nothing comes for ``silence_seconds``, ``GoneError`` and ``SourceError``.
        """
        try:
            async with asyncio.timeout(silence_seconds):
                chunk = await self._content.readany()
        except aiohttp.ClientError:
            return None
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if max(map(len, (self._rest, *lines))) > MAX_LINE_BYTES:
            raise SourceError(Reason.TOO_LARGE, f"an event of the watch is larger than {MAX_LINE_BYTES} bytes")
        if sum(map(len, lines)) > THREAD_ABOVE_BYTES:
            return await asyncio.to_thread(_events, lines, self._scope.words)
        await asyncio.sleep(0)  # reading what is there already yields to nobody
        return _events(lines, self._scope.words)


async def _body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The body, cut off soon after ``max_bytes``."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            break
    return bytes(body)


def _page(body: bytes) -> Page:
    match json_object(body):
        case {"items": list() | None as items, "metadata": {"resourceVersion": str() as version} as metadata} if (
            version
        ):
            pods = tuple(pod for item in items or () if (pod := pod_in(item)) is not None)
            following = metadata.get("continue")
            return Page(pods=pods, version=version, following=following if isinstance(following, str) else "")
    raise SourceError(Reason.INVALID, "the answer is no list of pods; check api_server")


def _events(lines: list[bytes], where: str) -> tuple[Event, ...]:
    return tuple(_event(line, where) for line in lines if line.strip())


def _event(line: bytes, where: str) -> Event:
    match json_object(line):
        case {"type": "ERROR", "object": status}:
            raise error_event(status, where=where)
        case {"type": str() as type_, "object": dict() as item}:
            return Event(type=type_, version=version_in(item), pod=pod_in(item))
    raise SourceError(Reason.INVALID, "a line of the watch is no event; check api_server")
