"""Looks at processes: one at a time, once more when asked meanwhile, and a hang costs nothing else."""

import asyncio
import threading
from collections.abc import Iterable

import pytest

from pinchpoint.config import Settings
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.looking import ProcessLook
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import EngineProcess, EngineTarget, Reason
from pinchpoint.sources.process import Looked, ProcessFinder, ProcessSettings
from tests.daemon.test_board import TwoGpus, scrape


class Finder(ProcessFinder):
    """Finds one process; hangs while ``gate`` is closed."""

    def __init__(self) -> None:
        self.gate, self.looks, self.defect = threading.Event(), 0, False
        self.gate.set()

    def look(self, targets: Iterable[EngineTarget]) -> Looked:
        self.looks += 1
        assert self.gate.wait(20)
        if self.defect:
            raise RuntimeError("a defect")
        return Looked(processes={"chat": EngineProcess(pid=self.looks)}, living=frozenset({1}))


@pytest.fixture
def finder() -> Finder:
    return Finder()


@pytest.fixture
def board() -> Board:
    board = Board(Settings(), TwoGpus())
    board.expect_engines([EngineTarget(engine="chat", url="http://127.0.0.1:1")], now=0.0)
    return board


@pytest.fixture
async def look(board: Board, finder: Finder) -> ProcessLook:
    clock = asyncio.get_running_loop().time
    look = ProcessLook(Scheduler(), board, clock, finder)
    look.follow(Settings(processes=ProcessSettings(deadline_seconds=0.5)))
    return look


async def until(what: object) -> None:
    async with asyncio.timeout(10):
        while not what():  # type: ignore[operator]
            await asyncio.sleep(0.005)


def is_up(board: Board) -> bool | None:
    return next((report.up for report in board.snapshot(1.0, 0.0)[1] if report.source == "process"), None)


async def test_looks_that_are_asked_for_during_one_are_one_more(
    look: ProcessLook, finder: Finder, board: Board
) -> None:
    finder.gate.clear()
    for _ in range(5):
        look.soon()
        await asyncio.sleep(0.01)
    assert finder.looks == 1
    finder.gate.set()
    await until(lambda: finder.looks == 2)
    await asyncio.sleep(0.05)
    assert finder.looks == 2
    assert is_up(board) is True


async def test_a_look_that_hangs_is_said_and_what_was_found_holds(
    look: ProcessLook, finder: Finder, board: Board
) -> None:
    look.soon()
    await until(lambda: is_up(board))
    finder.gate.clear()
    look.soon()
    await until(lambda: is_up(board) is False)
    absence = board.snapshot(1.0, 0.0)[0].absence("process")
    assert absence is not None
    assert absence.reason is Reason.HUNG
    look.soon()
    await asyncio.sleep(0.05)
    assert finder.looks == 2  # no other begins
    finder.gate.set()
    await until(lambda: is_up(board))


async def test_a_defect_costs_one_look(look: ProcessLook, finder: Finder, board: Board) -> None:
    finder.defect = True
    look.soon()
    await until(lambda: is_up(board) is False)
    finder.defect = False
    look.soon()
    await until(lambda: is_up(board))


async def test_nobody_looks_who_shall_not(look: ProcessLook, finder: Finder, board: Board) -> None:
    look.follow(Settings(processes=ProcessSettings(enabled=False)))
    look.soon()
    await asyncio.sleep(0.05)
    assert (finder.looks, is_up(board)) == (0, None)


def test_an_engine_that_begins_anew_is_told_apart_from_one_that_goes_on(board: Board) -> None:
    begun = [board.put_engine("chat", scrape(at), 0.1) for at in (1.0, 2.0)]
    absence = board.snapshot(1.0, 0.0)[0].absence("engine/none")
    assert absence is None
    assert begun == [True, False]
