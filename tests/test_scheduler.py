"""The scheduler: APScheduler runs for real, on a clock that the test moves, or on short periods."""

import asyncio
import gc
import io
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import apscheduler.schedulers.base
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pinchpoint import logs
from pinchpoint.scheduler import Scheduler, _Grid
from pinchpoint.snapshot import JobReport
from tests.fakes.process_logging import restored_logging


class Simulated:
    """A scheduler whose clock stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.scheduler = Scheduler(clock=lambda: self.now)
        self.runs: list[float] = []

    async def job(self) -> None:
        self.runs.append(self.now - 1000)

    async def at(self, seconds: float) -> None:
        """Moves the clock to ``seconds`` after the start, and lets the loop do what is due."""
        self.now = 1000 + seconds
        self.scheduler._engine.wakeup()
        await turns()

    def report(self, job: str) -> JobReport:
        return next(report for report in self.scheduler.reports() if report.job == job)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def simulated() -> AsyncIterator[Simulated]:
    simulated = Simulated()
    simulated.scheduler.start()
    yield simulated
    await simulated.scheduler.drain(0)


@pytest.fixture
def events() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as captured:
        yield captured  # type: ignore[misc]


def failing(error: BaseException) -> Callable[[], object]:
    async def run() -> None:
        raise error

    return run


async def test_a_job_runs_at_its_offset_and_then_every_period(simulated: Simulated) -> None:
    simulated.scheduler.every("a", 10, simulated.job, offset_seconds=3)
    for second in range(25):
        await simulated.at(second)
    assert simulated.runs == [3, 13, 23]
    assert simulated.report("a") == JobReport(job="a", runs_total=3, last_duration_seconds=0)


async def test_a_job_that_runs_at_once_keeps_a_whole_period_to_its_next_run(simulated: Simulated) -> None:
    simulated.scheduler.every("a", 10, simulated.job, offset_seconds=3, first_run_at_once=True)
    for second in range(25):
        await simulated.at(second)
    assert simulated.runs == [0, 13, 23]
    assert simulated.report("a").missed_total == 0


async def test_jobs_given_before_the_start_begin_at_the_start() -> None:
    simulated = Simulated()
    simulated.scheduler.every("a", 10, simulated.job, offset_seconds=1)
    simulated.now += 100
    simulated.scheduler.start()
    await simulated.at(100.5)
    assert simulated.runs == []
    await simulated.at(101)
    assert simulated.runs == [101]
    assert simulated.report("a").missed_total == 0
    await simulated.scheduler.drain(0)


async def test_names_spread_the_starts_within_the_period_and_five_seconds(simulated: Simulated) -> None:
    async def first_run(job: str, seconds: float) -> float:
        began = simulated.now - 1000
        simulated.runs.clear()
        simulated.scheduler.every(job, seconds, simulated.job)
        for step in range(101):
            await simulated.at(began + step * 0.05)
        simulated.scheduler.cancel(job)
        return simulated.runs[0] - began

    starts = [await first_run(f"engine/{number}", 60) for number in range(8)]
    assert len(set(starts)) >= 6
    assert max(starts) <= 5.05
    assert await first_run("engine/3", 60) == pytest.approx(starts[3], abs=0.051)
    assert await first_run("engine/3", 1) <= 1.05


async def test_a_stall_gives_one_late_run_and_counts_what_was_missed(simulated: Simulated) -> None:
    simulated.scheduler.every("a", 1, simulated.job, offset_seconds=0)
    await simulated.at(0)
    await simulated.at(86_400.5)
    await simulated.at(86_401)
    assert simulated.runs == [0, 86_400.5, 86_401]
    assert simulated.report("a").missed_total == 86_399


async def test_a_run_that_lasts_makes_the_next_ones_skipped_and_says_so_once(
    simulated: Simulated, events: list[dict[str, object]]
) -> None:
    go_on = asyncio.Event()

    async def slow() -> None:
        await simulated.job()
        await go_on.wait()

    told: list[str] = []
    simulated.scheduler.every("slow", 1, slow, offset_seconds=0, on_skip=lambda: told.append("slow"))
    simulated.scheduler.every("quick", 1, simulated.job, offset_seconds=0.5)
    for half in range(8):
        await simulated.at(half / 2)
    assert simulated.report("slow") == JobReport(job="slow", skipped_total=3)
    assert told == ["slow"] * 3
    assert simulated.report("quick").runs_total == 4
    go_on.set()
    await turns()
    assert simulated.report("slow") == JobReport(job="slow", runs_total=1, skipped_total=3, last_duration_seconds=3.5)
    await simulated.at(4)
    assert simulated.report("slow").runs_total == 2
    assert [event["event"] for event in events] == [
        "job is still running, its runs are skipped meanwhile",
        "job has ended, its runs go on",
    ]


async def test_a_job_that_raises_runs_on_and_is_logged_when_its_error_changes_and_when_it_is_well(
    simulated: Simulated, events: list[dict[str, object]]
) -> None:
    outcomes: list[Exception | None] = [None, ValueError("a"), ValueError("a"), OSError("b"), OSError("b"), None, None]

    async def run() -> None:
        if (outcome := outcomes[simulated.report("a").runs_total]) is not None:
            raise outcome

    simulated.scheduler.every("a", 1, run, offset_seconds=0)
    for second in range(len(outcomes)):
        await simulated.at(second)
    report = simulated.report("a")
    assert (report.runs_total, report.failures_total) == (7, 4)
    assert [event["event"] for event in events] == ["job failed", "job failed", "job is well again"]


async def test_a_cancellation_from_within_is_a_failure_and_ends_nothing(simulated: Simulated) -> None:
    simulated.scheduler.every("a", 1, failing(asyncio.CancelledError()), offset_seconds=0)  # type: ignore[arg-type]
    simulated.scheduler.every("b", 1, simulated.job, offset_seconds=0)
    for second in range(3):
        await simulated.at(second)
    assert simulated.report("a").failures_total == 3
    assert simulated.report("b").runs_total == 3


async def test_a_cancelled_job_is_gone_with_its_run_in_flight(
    simulated: Simulated, events: list[dict[str, object]]
) -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    simulated.scheduler.every("a", 1, run, offset_seconds=0)
    await simulated.at(0)
    simulated.scheduler.cancel("a")
    simulated.scheduler.cancel("never given")
    await simulated.at(5)
    assert ended == ["cancelled"]
    assert simulated.scheduler.jobs() == ()
    assert simulated.scheduler.reports() == ()
    assert events == []


async def test_a_job_cancelled_between_its_submission_and_its_first_step_never_runs(
    simulated: Simulated, capfd: pytest.CaptureFixture[str]
) -> None:
    simulated.scheduler.every("a", 1, simulated.job, offset_seconds=0)
    await turns()
    simulated.runs.clear()
    simulated.now += 1
    simulated.scheduler._engine._process_jobs()  # submits
    simulated.scheduler.cancel("a")
    await turns()
    assert simulated.runs == []
    assert capfd.readouterr().err == ""


async def test_a_job_of_the_same_name_takes_the_place_of_the_old_one_and_its_counts(simulated: Simulated) -> None:
    stuck = asyncio.Event()

    async def old() -> None:
        if simulated.report("a").runs_total:
            await stuck.wait()

    simulated.scheduler.every("a", 1, old, offset_seconds=0)
    await simulated.at(0)
    await simulated.at(1)
    simulated.scheduler.every("a", 5, simulated.job, offset_seconds=0)
    await simulated.at(1)
    await simulated.at(6)
    assert simulated.runs == [1, 6]
    assert simulated.scheduler.jobs() == ("a",)
    report = simulated.report("a")
    assert (report.runs_total, report.skipped_total, report.missed_total) == (3, 0, 0)


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)], ids=["an hour on", "an hour back"])
async def test_a_step_of_the_wall_clock_neither_stops_a_job_nor_fires_it(
    monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    class Stepped(datetime):
        by = timedelta()

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            assert tz is not None
            return tz.fromutc(datetime.now(UTC).replace(tzinfo=tz) + cls.by)

    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Stepped)
    runs: list[float] = []

    async def run() -> None:
        runs.append(time.monotonic())

    scheduler = Scheduler()
    scheduler.start()
    scheduler.every("a", 0.03, run, offset_seconds=0)
    await asyncio.sleep(0.1)
    before = len(runs)
    Stepped.by = step
    await asyncio.sleep(0.3)
    await scheduler.drain(1)
    (report,) = scheduler.reports()
    assert 1 <= len(runs) - before <= 11
    assert len(runs) + report.missed_total + report.skipped_total == pytest.approx(0.4 / 0.03, abs=4)


async def test_real_time_keeps_the_period_without_drift() -> None:
    runs: list[float] = []

    async def run() -> None:
        runs.append(time.monotonic())

    scheduler = Scheduler()
    scheduler.start()
    scheduler.every("a", 0.02, run, offset_seconds=0)
    began = time.monotonic()
    await asyncio.sleep(0.5)
    lasted = time.monotonic() - began
    await scheduler.drain(1)
    (report,) = scheduler.reports()
    assert report.runs_total + report.missed_total + report.skipped_total == pytest.approx(lasted / 0.02, abs=2)


async def test_a_job_does_not_inherit_the_context_of_whoever_started_the_scheduler() -> None:
    seen: list[dict[str, object]] = []

    async def run() -> None:
        seen.append(structlog.contextvars.get_contextvars())
        structlog.contextvars.bind_contextvars(left_behind=True)

    structlog.contextvars.bind_contextvars(request="reload")
    simulated = Simulated()
    simulated.scheduler.start()
    simulated.scheduler.every("a", 1, run, offset_seconds=0)
    for second in range(2):
        await simulated.at(second)
    structlog.contextvars.clear_contextvars()
    await simulated.scheduler.drain(0)
    assert seen == [{"job": "a"}, {"job": "a"}]


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    with restored_logging():
        stream = io.StringIO()
        logs.configure("info", "logfmt", stream)
        yield stream


async def test_a_drain_waits_for_runs_in_flight_and_leaves_no_task_and_no_error_line(log_lines: io.StringIO) -> None:
    ended: list[str] = []

    async def run() -> None:
        await asyncio.sleep(0.05)
        ended.append("well")

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("closed")

    before = asyncio.all_tasks()
    scheduler = Scheduler()
    scheduler.start()
    scheduler.every("patient", 10, run, offset_seconds=0)
    scheduler.every("stubborn", 10, stubborn, offset_seconds=0)
    await asyncio.sleep(0.01)
    began = time.monotonic()
    await scheduler.drain(0.2)
    assert 0.2 <= time.monotonic() - began < 0.6
    assert ended == ["well", "closed"]
    assert asyncio.all_tasks() == before
    assert not scheduler._engine.running
    gc.collect()  # an exception that nobody fetched would be reported now
    assert log_lines.getvalue().count("\n") == 1, log_lines.getvalue()
    line = log_lines.getvalue()
    assert "level=warning" in line
    assert "stubborn" in line


async def test_a_drain_returns_when_a_job_ignores_its_cancellation() -> None:
    release = asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    scheduler = Scheduler()
    scheduler.start()
    scheduler.every("deaf", 1, deaf, offset_seconds=0)
    await asyncio.sleep(0.01)
    began = time.monotonic()
    await scheduler.drain(0.05)
    assert time.monotonic() - began < 1
    release.set()
    await turns()


async def test_nothing_runs_after_a_drain_and_a_second_drain_is_fine() -> None:
    simulated = Simulated()
    await simulated.scheduler.drain(1)  # not started: nothing to do
    simulated.scheduler.start()
    simulated.scheduler.every("a", 1, simulated.job, offset_seconds=1)
    await simulated.scheduler.drain(1)
    await simulated.scheduler.drain(1)
    simulated.scheduler.cancel("a")
    simulated.now += 10
    await asyncio.sleep(0.02)
    assert simulated.runs == []


@pytest.mark.parametrize(("seconds", "offset"), [(0, None), (-1, None), (1, -0.1), (1e-9, 0)])
async def test_a_schedule_that_is_none_is_refused(seconds: float, offset: float | None) -> None:
    simulated = Simulated()
    with pytest.raises(ValueError, match=r"job a: .* is no schedule"):
        simulated.scheduler.every("a", seconds, simulated.job, offset_seconds=offset)


@given(
    period=st.floats(0.001, 3600),
    offset=st.floats(0, 10),
    at_once=st.booleans(),
    waits=st.lists(st.floats(0, 20_000), max_size=30),
)
def test_every_time_on_the_grid_lies_a_whole_number_of_periods_after_the_first(
    period: float, offset: float, at_once: bool, waits: list[float]
) -> None:
    grid = _Grid(timedelta(seconds=period), timedelta(seconds=offset), at_once)
    now = datetime(1970, 1, 1, tzinfo=UTC)
    due, slots = grid.get_next_fire_time(None, now), []
    for wait in waits:
        now += timedelta(seconds=wait)
        while due <= now:
            slots.append(grid.slot(due))
            previous, due = due, grid.get_next_fire_time(due, now)
            assert due > previous
        assert due - now <= timedelta(seconds=period) * (1 + at_once) + timedelta(seconds=offset)
    assert slots == sorted(set(slots))
    assert len(slots) <= 3 * len(waits)
