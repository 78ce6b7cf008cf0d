"""Jobs of engines and finders follow what is configured and found: which begin, which stay, which end."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from pinchpoint.config import Settings
from pinchpoint.daemon import finding as finding_module
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.node import NoGpus
from pinchpoint.daemon.observing import AT_ONCE, Observer
from pinchpoint.snapshot import EngineTarget, Reason
from pinchpoint.sources.discovery import Finding, Opening
from pinchpoint.sources.discovery.finder import Say
from pinchpoint.sources.host import HostSource
from pinchpoint.sources.http import SourceError
from pinchpoint.sources.http.client import MAX_CONNECTIONS


class Jobs:
    """A scheduler that runs nothing and remembers what it was told."""

    def __init__(self) -> None:
        self.given: dict[str, dict[str, Any]] = {}
        self.begun: list[str] = []
        self.ended: list[str] = []

    def every(self, job: str, seconds: float, run: Callable[[], Any], **how: Any) -> None:
        self.given[job] = {"seconds": seconds, "run": run, **how}
        self.begun.append(job)

    def cancel(self, job: str) -> None:
        if self.given.pop(job, None):
            self.ended.append(job)


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def board() -> Board:
    return Board(settings(), NoGpus())


@pytest.fixture
def observer(jobs: Jobs, board: Board) -> Observer:
    return Observer(jobs, board, HostSource().read, lambda: 0.0, lambda: ())


def settings(*engines: dict[str, Any], **more: Any) -> Settings:
    given = {
        "host": {"enabled": False},
        "pods": {"enabled": False},
        "processes": {"enabled": False},
        "discovery": {"loopback": False},
        "engines": {"interval_seconds": 10, "targets": list(engines)},
    }
    return Settings(**{**given, **more})


def engine(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "url": f"http://{name}:1", **more}


async def follow(observer: Observer, *engines: dict[str, Any], **more: Any) -> None:
    await observer.apply(settings(*engines, **more))


async def test_a_few_engines_are_asked_at_once_and_a_fleet_is_spread_over_the_interval(observer, jobs) -> None:
    await follow(observer, engine("a"), engine("b"))
    assert all(job["first_run_at_once"] for job in jobs.given.values())
    await follow(observer, *(engine(f"e{n}") for n in range(500)))
    fleet = [job for name, job in jobs.given.items() if name.startswith("engine/e")]
    assert not any(job["first_run_at_once"] for job in fleet)
    seconds = [int(job["offset_seconds"]) for job in fleet]
    assert all(25 < seconds.count(second) < 80 for second in range(10)), "500 engines, 10 s: about 50 in each second"


async def test_an_engine_has_its_place_in_the_interval_whoever_else_is_watched(observer, jobs) -> None:
    await follow(observer, engine("chat"))
    alone = jobs.given["engine/chat"]["offset_seconds"]
    await follow(observer)
    await follow(observer, *(engine(f"e{n}") for n in range(AT_ONCE + 1)), engine("chat"))
    assert jobs.given["engine/chat"]["offset_seconds"] == alone


async def test_what_is_said_of_an_engine_may_change_without_a_new_beginning(observer, jobs) -> None:
    await follow(observer, engine("chat", max_num_seqs=64))
    for said in ({"max_num_seqs": 128}, {"gpus": ["0"]}, {"slo": {"ttft_seconds": 9}}):
        await follow(observer, engine("chat", **said))
    assert jobs.begun == ["engine/chat"]
    assert jobs.ended == []


@pytest.mark.parametrize("other", [{"url": "http://b:1"}, {"metrics_path": "/m"}, {"bearer_token": "x"}])
async def test_another_place_or_another_way_in_is_another_beginning(observer, jobs, other: dict[str, Any]) -> None:
    await follow(observer, engine("chat"))
    await follow(observer, {**engine("chat"), **other})
    assert jobs.begun == ["engine/chat"] * 2


class Telling:
    """A finder that tells by itself, when the test says so."""

    def __init__(self, name: str = "file/told") -> None:
        self.name = name
        self.say: Say | None = None
        self.begun = 0
        self.fault: Exception | None = None
        self.ended = False

    async def watch(self, say: Say) -> None:
        self.say, self.begun = say, self.begun + 1
        if self.fault:
            raise self.fault
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


def found(*names: str) -> Finding:
    return Finding(targets=tuple(EngineTarget(engine=n, url=f"http://{n}:1", found_by="file/told") for n in names))


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> Telling:
    telling = Telling()
    opening = Opening(Settings(), lambda: telling)
    monkeypatch.setattr(
        finding_module, "openings", lambda discovery, _: {telling.name: opening} if discovery.files else {}
    )
    return telling


TOLD = {"discovery": {"files": [{"name": "told", "paths": ["/told.json"]}]}}


async def test_a_finder_that_tells_by_itself_is_heard_until_it_is_no_longer_wanted(
    observer, jobs, board, telling
) -> None:
    await follow(observer, **TOLD)
    await asyncio.sleep(0)
    telling.say(found("a", "b"))
    assert set(jobs.given) == {"engine/a", "engine/b"}
    telling.say(SourceError(Reason.TIMEOUT, "no answer"))
    assert set(jobs.given) == {"engine/a", "engine/b"}
    assert board.snapshot(0.0, 0.0)[0].absence("discovery/file/told").reason is Reason.TIMEOUT
    telling.say(found("b"))
    assert set(jobs.given) == {"engine/b"}
    assert board.snapshot(0.0, 0.0)[0].absence("discovery/file/told") is None
    await follow(observer, **TOLD)
    assert telling.begun == 1, "it stays open over a reload that does not touch it"
    await follow(observer)
    await asyncio.sleep(0)
    assert telling.ended
    assert jobs.given == {}
    telling.say(found("c"))
    assert jobs.given == {}


async def test_a_defect_of_a_finder_is_an_absence_and_it_begins_again(observer, board, telling, monkeypatch) -> None:
    monkeypatch.setattr(finding_module, "WATCH_AGAIN_SECONDS", 0.001)
    telling.fault = ZeroDivisionError()
    await follow(observer, **TOLD)
    while telling.begun < 3:
        await asyncio.sleep(0.001)
    assert board.snapshot(0.0, 0.0)[0].absence("discovery/file/told").reason is Reason.ERROR
    await observer.close()


async def test_engines_that_hang_leave_connections_to_those_that_answer(jobs, board) -> None:
    """More of them than the pool has connections: each held one until its deadline, and the others timed out."""
    body = b"vllm:num_requests_running 1\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()  # as uvicorn does after five idle seconds

    hanging = [socket.create_server(("127.0.0.1", 0)) for _ in range(MAX_CONNECTIONS + 20)]  # nobody accepts
    well = await asyncio.start_server(answer, "127.0.0.1", 0)
    observer = Observer(jobs, board, HostSource().read, time.monotonic, lambda: ())
    try:
        ports = {f"hangs{n}": each.getsockname()[1] for n, each in enumerate(hanging)}
        ports["well"] = well.sockets[0].getsockname()[1]
        targets = [
            engine(name, url=f"http://127.0.0.1:{port}", timeout_seconds=2 if name == "well" else 10)
            for name, port in ports.items()
        ]
        await follow(observer, engines={"interval_seconds": 10, "targets": targets})
        await jobs.given["engine/well"]["run"]()
        first = time.monotonic()
        scrapes = [asyncio.create_task(jobs.given[f"engine/hangs{n}"]["run"]()) for n in range(len(hanging))]
        await asyncio.sleep(0.5)  # until they hold what they can
        await jobs.given["engine/well"]["run"]()
        snapshot, _ = board.snapshot(time.monotonic(), 0.0)
        assert [reading.engine for reading in snapshot.engines] == ["well"], "it answered again, within its deadline"
        assert snapshot.engines[0].at > first
        for scrape in scrapes:
            scrape.cancel()
        await asyncio.wait(scrapes)
    finally:
        await observer.close()
        well.close()
        for each in hanging:
            each.close()
