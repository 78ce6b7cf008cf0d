"""Values made of files: looked at now and then, in one thread, and kept while the disk hangs."""

import asyncio
import threading
from pathlib import Path
from time import monotonic

import pytest

from pinchpoint.sources.http import kept
from pinchpoint.sources.http.kept import Kept


def paths(path: str) -> tuple[str, ...]:
    return (path,)


async def test_a_value_is_made_once_and_again_only_when_its_file_has_changed(tmp_path: Path):
    file, made = tmp_path / "file", []
    file.write_text("a")

    def make(path: str) -> str:
        made.append(path)
        return Path(path).read_text()

    values = Kept(make, paths)
    assert [await values.get(str(file), now=10.0 * n) for n in range(3)] == ["a"] * 3
    file.write_text("bc")
    assert await values.get(str(file), now=21.0) == "a"  # looked at a second ago
    assert await values.get(str(file), now=21.0, at_once=True) == "bc"
    assert len(made) == 2


async def test_many_who_ask_at_once_cause_one_look(tmp_path: Path):
    made = []

    def make(path: str) -> str:
        made.append(path)
        return path

    values = Kept(make, paths)
    assert await asyncio.gather(*(values.get("x", now=0.0) for _ in range(100))) == ["x"] * 100
    assert len(made) == 1


async def test_a_disk_that_hangs_holds_one_thread_and_nobody_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept, "PATIENCE_SECONDS", 0.05)
    release, looks = threading.Event(), []

    def make(path: str) -> str:
        looks.append(path)
        if len(looks) > 1:
            release.wait(10)
        return f"value {len(looks)}"

    file = tmp_path / "file"
    file.write_text("a")
    values = Kept(make, paths)
    assert await values.get(str(file), now=0.0) == "value 1"
    file.write_text("bc")
    began = monotonic()
    assert [await values.get(str(file), now=10.0 * n, at_once=True) for n in (1, 2, 3)] == ["value 1"] * 3
    assert monotonic() - began < 5
    assert len(looks) == 2
    release.set()
    while await values.get(str(file), now=31.0) != "value 2":
        await asyncio.sleep(0.01)


async def test_a_defect_of_the_maker_is_raised_and_not_waited_for():
    def broken(path: str) -> str:
        raise RuntimeError(path)

    with pytest.raises(RuntimeError):
        await Kept(broken, paths).get("x", now=0.0)


async def test_who_is_cancelled_while_waiting_does_not_end_the_look_for_the_others(tmp_path: Path):
    release = threading.Event()

    def slow(path: str) -> str:
        release.wait(10)
        return path

    values = Kept(slow, paths)
    first, second = (asyncio.create_task(values.get("x", now=0.0)) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    release.set()
    assert await second == "x"
    with pytest.raises(asyncio.CancelledError):
        await first
