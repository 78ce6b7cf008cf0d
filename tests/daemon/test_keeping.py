"""The memory on disk: what a disk, another process and a foreign file do to it, and a kill."""

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pinchpoint.daemon.keeping import VERDICTS, Keeper
from pinchpoint.daemon.remembered import Remembered
from pinchpoint.simulator import SimulatedNode, ThreadedNode
from tests.daemon.test_remembered import NOON, chat
from tests.fakes.daemon import RunningDaemon

NAME = VERDICTS.file


def keeper(folder: Path | None) -> Keeper[Mapping[str, Remembered]]:
    return Keeper(folder, VERDICTS, wall=lambda: NOON + 1)


async def test_what_is_kept_is_recalled_by_the_next_process(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "when needed"
    assert await keeper(folder).recall() == {}
    assert not folder.exists()
    first = keeper(folder)
    await first.keep(lambda: {"chat": chat()}, ended=True)
    assert (folder / NAME).stat().st_mode & 0o077 == 0
    assert list(folder.glob("*.new")) == []
    first.close()
    assert await keeper(folder).recall() == {"chat": chat()}


async def test_without_a_folder_or_an_engine_nothing_is_written(tmp_path: Path) -> None:
    assert await keeper(None).recall() == {}
    await keeper(None).keep(lambda: {"chat": chat()})
    await keeper(tmp_path / "state").keep(dict)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", [b"", b"\x00\xff garbage", b'{"some": "other tool"}'])
async def test_a_foreign_file_is_set_aside_with_one_line_and_a_new_one_begins(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    mine = keeper(tmp_path)
    with capture_logs() as lines:
        assert await mine.recall() == {}
        await mine.keep(lambda: {"chat": chat()})
    assert [(line["log_level"], line["set_aside"]) for line in lines] == [("warning", f"{tmp_path / NAME}.set-aside")]
    assert (tmp_path / f"{NAME}.set-aside").read_bytes() == content
    assert json.loads((tmp_path / NAME).read_text())["engines"].keys() == {"chat"}


async def test_one_process_at_a_time_and_the_other_says_so_once(tmp_path: Path) -> None:
    first, second = keeper(tmp_path), keeper(tmp_path)
    await first.keep(lambda: {"chat": chat()})
    with capture_logs() as lines:
        assert await second.recall() == {}
        await second.keep(lambda: {"other": chat()})
    assert [line["remedy"] for line in lines] == ["set state_directory to a folder of its own"]
    first.close()
    with capture_logs() as lines:
        await second.keep(lambda: {"other": chat()})
    assert [line["event"] for line in lines] == ["verdicts are remembered again"]
    assert json.loads((tmp_path / NAME).read_text())["engines"].keys() == {"other"}


async def test_a_pipe_in_its_place_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    started = time.monotonic()
    with capture_logs() as lines:
        assert await keeper(tmp_path).recall() == {}
    assert time.monotonic() - started < 1.0
    assert [line["event"] for line in lines] == ["verdicts will not outlive a restart"]


async def test_a_folder_that_cannot_be_made_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    mine = keeper(tmp_path / "file" / "state")
    with capture_logs() as lines:
        assert await mine.recall() == {}
        for _ in range(3):
            await mine.keep(lambda: {"chat": chat()})
    assert len(lines) == 1


async def test_a_disk_that_hangs_is_left_alone_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinchpoint.daemon.keeping.WRITE_SECONDS", 0.05)
    hang = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> dict[str, Any]:
        asyncio.run_coroutine_threadsafe(hang.wait(), loop).result(20)
        return {"chat": chat()}

    mine = keeper(tmp_path)
    with capture_logs() as lines:
        await mine.keep(slow)
        await mine.keep(lambda: {"late": chat()})
        hang.set()
        while not (tmp_path / NAME).exists():
            await asyncio.sleep(0.01)
        await mine.keep(lambda: {"again": chat()})
    assert [line["event"] for line in lines] == ["verdicts will not outlive a restart", "verdicts are remembered again"]
    assert json.loads((tmp_path / NAME).read_text())["engines"].keys() == {"again"}


@pytest.fixture
def simulated() -> Iterator[SimulatedNode]:
    node = SimulatedNode(scenario="healthy")
    thread = ThreadedNode(node)
    thread.start()
    yield node
    thread.stop()


def test_a_daemon_that_is_killed_goes_on_where_it_was(tmp_path: Path, simulated: SimulatedNode) -> None:
    config = tmp_path / "pinchpoint.yaml"
    targets = [{"name": target.engine, "url": target.url} for target in simulated.targets()]
    engines = {"interval_seconds": 1, "targets": targets}
    state = tmp_path / "memory"
    given = {"gpu": {"enabled": False}, "discovery": {"loopback": False}, "engines": engines}
    config.write_text(json.dumps({**given, "state_directory": str(state)}))
    engine = targets[0]["name"]

    def verdict(daemon: RunningDaemon) -> tuple[str, float, float]:
        """The class, since when, and the seconds in it."""
        told = json.loads(daemon.get("/api/v1/diagnosis"))["engines"][engine]
        seconds = daemon.series("pinchpoint_bottleneck_class_seconds_total", engine=engine, **{"class": told["class"]})
        return told["class"], told["since_unix_seconds"], seconds[0]

    with RunningDaemon(tmp_path, f"--config.file={config}") as daemon:
        daemon.wait_for_series("pinchpoint_bottleneck", 1.0, engine=engine, **{"class": "healthy"})
        daemon.wait_for(lambda: (state / NAME).exists() and '"shown":"healthy"' in (state / NAME).read_text(), "a save")
        named, since, seconds = verdict(daemon)
        daemon.process.kill()
    with RunningDaemon(tmp_path, f"--config.file={config}") as daemon:
        daemon.wait_for_series("pinchpoint_bottleneck", 1.0, engine=engine, **{"class": named})
        assert verdict(daemon)[1] == pytest.approx(since, abs=0.1)
        assert seconds <= verdict(daemon)[2] < seconds + 60
        timeline = json.loads(daemon.get("/api/v1/diagnosis"))["engines"][engine]["timeline"]
        assert [each["class"] for each in timeline][-2:] == [named, named], "before and after, and nothing between"
        assert daemon.terminate()[1] == 0
    assert json.loads((state / NAME).read_text())["ended"] is True
