"""The ledger on a disk that is full, gone, hung, corrupt or shared: nothing is granted that is not written down."""

import asyncio
import fcntl
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import ProbeSkip
from pinchpoint.sources.probe.spend import purse as purse_module
from pinchpoint.sources.probe.spend.amount import Cap, Caps, Tokens
from pinchpoint.sources.probe.spend.book import Ask, Refusal, Reservation
from pinchpoint.sources.probe.spend.book_file import NAME
from pinchpoint.sources.probe.spend.book_text import VERSION, _checksum
from pinchpoint.sources.probe.spend.purse import Purse

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC
DAY = 86_400.0
ASK = Ask(target="t", most=Tokens(input=60, output=40), caps=Caps(day=Cap(tokens=1000)))


class Clocks:
    def __init__(self) -> None:
        self.wall, self.monotonic = NOON, 0.0

    def later(self, seconds: float) -> None:
        self.wall, self.monotonic = self.wall + seconds, self.monotonic + seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def purse(tmp_path: Path, clocks: Clocks) -> Iterator[Purse]:
    purse = Purse(tmp_path / "state", lambda: clocks.wall, lambda: clocks.monotonic)
    yield purse
    purse.close()


async def reserve(purse: Purse) -> Reservation | Refusal:
    return (await purse.reserve(ASK))[0]


async def test_what_was_spent_outlives_the_process_and_nobody_else_can_read_it(purse, tmp_path, clocks) -> None:
    granted, room = await purse.reserve(ASK)
    assert isinstance(granted, Reservation)
    assert room.tokens == {"day": 800}
    assert (await purse.settle(granted, Tokens(input=50, output=32), ASK)).tokens == {"day": 918}
    file = tmp_path / "state" / NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    again = Purse(tmp_path / "state", lambda: clocks.wall, lambda: clocks.monotonic)
    assert (await again.reserve(ASK))[1].tokens == {"day": 718}
    again.close()


@pytest.mark.parametrize("junk", [b"", b"\x00" * 4096, b'{"ledger": {}, "sha256": "0"}', os.urandom(999)])
async def test_a_corrupt_ledger_is_set_aside_loudly_and_its_day_counts_as_used_up(purse, clocks, junk: bytes) -> None:
    await reserve(purse)
    file = purse.folder / NAME
    file.write_bytes(junk)
    with capture_logs() as logs:
        refusal = await reserve(purse)
    assert refusal.cause is ProbeSkip.BUDGET
    (said,) = logs
    assert said["log_level"] == "error"
    assert "delete" in said["remedy"]
    assert Path(said["set_aside"]).read_bytes() == junk
    clocks.later(DAY / 2)
    assert isinstance(await reserve(purse), Reservation)


async def test_one_flipped_digit_is_a_corrupt_ledger(purse) -> None:
    await reserve(purse)
    file = purse.folder / NAME
    file.write_text(file.read_text().replace('"tokens": 200', '"tokens": 100'))
    assert (await reserve(purse)).cause is ProbeSkip.BUDGET


async def test_a_ledger_that_vanishes_while_we_run_is_a_lost_one_and_one_that_was_never_there_a_new_one(purse) -> None:
    await reserve(purse)
    (purse.folder / NAME).unlink()
    assert (await reserve(purse)).cause is ProbeSkip.BUDGET


async def test_a_ledger_of_a_newer_pinchpoint_is_left_as_it_is(purse) -> None:
    await reserve(purse)
    file = purse.folder / NAME
    content = {"version": VERSION + 1, "whatever": []}
    text = f'{{"ledger": {{"version": {VERSION + 1}, "whatever": []}}, "sha256": "{_checksum(content)}"}}'
    file.write_text(text)
    refusal = await reserve(purse)
    assert (refusal.cause, "newer pinchpoint" in refusal.detail) == (ProbeSkip.LEDGER, True)
    assert file.read_text() == text


async def test_a_disk_that_is_gone_stops_everything_and_is_said_once_until_it_is_back(purse, tmp_path) -> None:
    await reserve(purse)
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    (tmp_path / "state").write_text("not a folder")
    with capture_logs() as logs:
        for _ in range(3):
            assert (await reserve(purse)).cause is ProbeSkip.LEDGER
        (tmp_path / "state").unlink()
        (tmp_path / "elsewhere").rename(tmp_path / "state")
        assert isinstance(await reserve(purse), Reservation)
    assert [entry["event"] for entry in logs] == [
        "the spend ledger can't be used, so hosted probes stop",
        "the spend ledger can be used again",
    ]


async def test_without_a_folder_nothing_is_granted_and_the_setting_is_named() -> None:
    refusal = await reserve(Purse(None))
    assert refusal == Refusal(cause=ProbeSkip.LEDGER, detail="there is no folder for it; set state_directory")


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from tests.sources.probe.spend.test_ledger_file import ASK, NAME, NOON, Purse
async def main():
    purse = Purse(Path(sys.argv[1]), lambda: NOON)
    print((await purse.reserve(ASK))[0].__class__.__name__)
    before = (purse.folder / NAME).read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))  # a file grows no further
    refused = (await purse.reserve(ASK))[0]
    print(refused.cause, (purse.folder / NAME).read_bytes() == before, sorted(p.name for p in purse.folder.iterdir()))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print((await purse.reserve(ASK))[1].tokens)
asyncio.run(main())
"""


def test_a_full_disk_stops_everything_and_leaves_the_old_ledger_whole(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE is not None
    ran = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path / "s"], capture_output=True, text=True, check=True)
    said = [line for line in ran.stdout.splitlines() if not line.startswith("20")]  # a log line begins with its year
    assert said == ["Reservation", f"ledger True ['{NAME}', '{NAME}.lock']", "{'day': 600}"]


async def test_a_disk_that_hangs_costs_a_deadline_once_and_no_thread_after_it(purse, monkeypatch) -> None:
    monkeypatch.setattr(purse_module, "DEADLINE_SECONDS", 0.05)
    let_go, change = threading.Event(), purse._file.change

    def hung(*given):
        let_go.wait(10)
        return change(*given)

    monkeypatch.setattr(purse._file, "change", hung)
    assert "has not answered" in (await reserve(purse)).detail
    threads = threading.active_count()
    for _ in range(20):
        assert (await reserve(purse)).detail.endswith("the disk hangs")
    assert threading.active_count() == threads
    let_go.set()
    while not purse._late.done():
        await asyncio.sleep(0.001)
    assert (await purse.reserve(ASK))[1].tokens == {"day": 600}, "the one that hung was granted to nobody, and is spent"


async def test_two_targets_that_meet_a_hanging_disk_together_wait_for_it_once(purse, monkeypatch) -> None:
    monkeypatch.setattr(purse_module, "DEADLINE_SECONDS", 0.05)
    let_go = threading.Event()
    monkeypatch.setattr(purse._file, "change", lambda *_given: let_go.wait(10))
    both = await asyncio.gather(reserve(purse), reserve(purse))
    assert all("has not answered" in refusal.detail for refusal in both)
    assert (await reserve(purse)).detail.endswith("the disk hangs")
    let_go.set()


async def test_two_processes_share_one_ledger_and_its_caps(tmp_path: Path, clocks) -> None:
    purses = [Purse(tmp_path, lambda: clocks.wall, lambda: clocks.monotonic) for _ in range(4)]
    answers = await asyncio.gather(*(reserve(purse) for purse in purses for _ in range(5)))
    assert sum(isinstance(answer, Reservation) for answer in answers) == 5
    for purse in purses:
        purse.close()


async def test_a_lock_that_another_process_never_gives_back_stops_us_for_that_long(purse, monkeypatch) -> None:
    from pinchpoint.sources.probe.spend import book_file

    monkeypatch.setattr(book_file, "LOCK_SECONDS", 0.05)
    await reserve(purse)
    with (purse.folder / f"{NAME}.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refusal = await reserve(purse)
    assert (refusal.cause, "another process" in refusal.detail) == (ProbeSkip.LEDGER, True)
    assert isinstance(await reserve(purse), Reservation)


@pytest.mark.parametrize("odd", ["fifo", "folder"])
async def test_what_is_no_file_is_no_ledger_and_nothing_waits_for_it(purse, odd: str) -> None:
    purse.folder.mkdir()
    path = purse.folder / NAME
    os.mkfifo(path) if odd == "fifo" else path.mkdir()
    assert (await reserve(purse)).cause is ProbeSkip.LEDGER
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(8):
        await reserve(purse)
    assert len(os.listdir("/proc/self/fd")) < before + 8  # none is left open each time


async def test_a_clock_that_creeps_back_brings_no_probe_too_soon_and_one_that_is_set_back_none_too_late(
    purse, clocks
) -> None:
    ask = replace(ASK, seconds_apart=54)
    answers = []
    for _ in range(5):
        answers.append((await purse.reserve(ask))[0])
        clocks.wall -= 1
    assert [isinstance(answer, Reservation) for answer in answers] == [True, False, False, False, False]
    assert answers[-1].cause is ProbeSkip.TOO_SOON
    clocks.wall -= 40 * DAY
    assert isinstance((await purse.reserve(ask))[0], Reservation)


async def test_a_clock_that_runs_off_for_a_while_brings_no_new_day(purse, clocks) -> None:
    for _ in range(5):
        assert isinstance(await reserve(purse), Reservation)
    clocks.wall += 40 * DAY
    assert (await reserve(purse)).cause is ProbeSkip.BUDGET
    clocks.later(1800)
    assert (await reserve(purse)).cause is ProbeSkip.BUDGET
    clocks.later(1800)
    assert isinstance(await reserve(purse), Reservation), "an hour later it is believed"
