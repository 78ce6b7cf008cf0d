"""Finds engines on this host: asks each TCP port that listens on loopback what it is."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import aiohttp
import psutil
import structlog

from pinchpoint.snapshot import EngineFacts, EngineTarget
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.http import HttpClient

NAME = "loopback"
MAX_PORTS = 256
MAX_BODY_BYTES = 2**20
FIRST_LOOK_BYTES = 2**13
AT_ONCE = 8
TIMEOUT_SECONDS = 1.0

# An engine that stopped listening stays visible as down this long, so that it can be paged on.
FORGET_SECONDS = 600.0

# Services that never speak HTTP, and that log a stranger's request as an attack or a broken client.
NOT_HTTP = frozenset({21, 22, 23, 25, 53, 110, 111, 143, 389, 465, 587, 993, 995, 2049, 3306, 5432, 6379, 11211, 27017})

_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "[::1]"}  # noqa: S104 - what others bind to

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A listening TCP socket: the address it is bound to, and its port."""

    port: int
    address: str


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask a port, and how to tell an engine by the answer: ``kind_of`` gives its kind, or nothing.

    ``kind_of`` sees the body so far, so it must not mind an end in the middle of a line.
    """

    path: str
    kind_of: Callable[[bytes], str]
    holds_metrics: bool = True  # whether ``path`` is where this engine is to be scraped


def listeners() -> tuple[Listener, ...]:
    """Every TCP socket that listens on this host, or none where the system does not tell. Blocks for milliseconds."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError) as error:
        _log.warning("listening ports can't be read, no engine is found by itself", cause=str(error))
        return ()
    return tuple(Listener(c.laddr.port, c.laddr.ip) for c in connections if c.status == psutil.CONN_LISTEN and c.laddr)


async def find_engines(
    session: aiohttp.ClientSession,
    questions: Sequence[Question],
    *,
    own_ports: Collection[int] = (),
    again: Mapping[str, Question] = MappingProxyType({}),
    listening: Callable[[], Iterable[Listener]] = listeners,
) -> tuple[EngineTarget, ...]:
    """The engines that answer on loopback now, in port order, named like ``vllm-8000``.

    Asks a few ports at a time, each question within a second and a megabyte, and only what listens: ``own_ports`` and
    ports of services that are no HTTP servers are left alone. A port that answers as no engine is not an error.
    ``again``, by URL, is what is asked first where it is known who listened last time.
    """
    bases: dict[int, str] = {}
    for listener in sorted(await asyncio.to_thread(lambda: tuple(listening()))):
        host = _HOSTS.get(listener.address)
        if host is not None and listener.port not in NOT_HTTP and listener.port not in own_ports:
            bases.setdefault(listener.port, f"http://{host}:{listener.port}")
    if len(bases) > MAX_PORTS:
        _log.warning("too many listening ports, only the lowest are asked", ports=len(bases), asked=MAX_PORTS)
    few = asyncio.Semaphore(AT_ONCE)
    asked = list(bases.items())[:MAX_PORTS]
    ways = [(*((again[url],) if url in again else ()), *questions) for _, url in asked]
    answers = await asyncio.gather(*(_who(session, url, way, few) for (_, url), way in zip(asked, ways, strict=True)))
    return tuple(
        EngineTarget(
            engine=f"{kind}-{port}",
            url=url,
            facts=EngineFacts(kind=kind),
            metrics_path=question.path if question.holds_metrics else "/metrics",
            found_by=NAME,
        )
        for (port, url), (kind, question) in zip(asked, answers, strict=True)
        if kind
    )


class LoopbackFinder:
    """The engines of this host, those included that stopped listening within the last minutes.

    ``again``, by kind, is how to see that an engine is still there where asking for its metrics is no mere look.
    """

    name = NAME

    def __init__(
        self,
        client: HttpClient,
        interval_seconds: float,
        now: Callable[[], float],
        *,
        own_ports: Callable[[], Collection[int]],
        questions: Sequence[Question],
        again: Mapping[str, Question] = MappingProxyType({}),
        listening: Callable[[], Iterable[Listener]] = listeners,
    ) -> None:
        self.interval_seconds = interval_seconds
        self._client, self._now, self._own_ports = client, now, own_ports
        self._questions, self._again, self._listening = questions, again, listening
        self._known: dict[str, tuple[EngineTarget, float]] = {}  # with when it was last seen

    async def find(self) -> Finding:
        last = [target for target, _ in self._known.values()]
        found = await find_engines(
            self._client.session,
            self._questions,
            own_ports=self._own_ports(),
            again={t.url: self._again[t.facts.kind] for t in last if t.facts.kind in self._again},
            listening=self._listening,
        )
        now = self._now()
        urls = {target.url for target in found}  # where another engine listens now, the one before is no more
        self._known = {name: known for name, known in self._known.items() if known[0].url not in urls} | {
            target.engine: self._known[target.engine] for target in found if target.engine in self._known
        }
        for target in found:
            if target.engine not in self._known:
                _log.info("engine found on loopback", engine=target.engine, url=target.url)
            self._known[target.engine] = target, now
        for name in [name for name, (_, seen) in self._known.items() if now - seen > FORGET_SECONDS]:
            _log.info("engine forgotten", engine=name, not_seen_for_seconds=FORGET_SECONDS)
            del self._known[name]
        return Finding(targets=tuple(target for target, _ in self._known.values()))


async def _who(
    session: aiohttp.ClientSession, url: str, questions: Sequence[Question], few: asyncio.Semaphore
) -> tuple[str, Question]:
    """The kind of engine at ``url``, empty for none, and the question that told."""
    async with few:
        for question in questions:
            try:
                if kind := await _ask(session, url + question.path, question.kind_of):
                    return kind, question
            except (aiohttp.ClientError, TimeoutError, ValueError):
                break  # silent or no HTTP server: it is left alone
        return "", questions[0]


async def _ask(session: aiohttp.ClientSession, url: str, kind_of: Callable[[bytes], str]) -> str:
    body, look_at = bytearray(), FIRST_LOOK_BYTES
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        session.get(
            url,
            headers={"Accept": "text/plain; version=0.0.4", "Accept-Encoding": "identity"},
            auto_decompress=False,
            allow_redirects=False,  # a local port shall not send us out of this host
            timeout=aiohttp.ClientTimeout(),
        ) as response,
    ):
        try:
            if response.status != 200:
                return ""
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    break
                if len(body) >= look_at:  # not at each chunk, of which there may be thousands
                    if kind := kind_of(bytes(body)):
                        return kind
                    look_at = 2 * len(body)
            return kind_of(bytes(body[:MAX_BODY_BYTES]))
        finally:
            response.close()  # a stranger's connection is not kept
