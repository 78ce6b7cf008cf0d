"""The one door to APScheduler: jobs with a fixed period, one run in flight each, counted, drained on stop.

Is not: a place that knows what a job does. A job fails by raising: it is counted, logged when its error changes and
once when it is well again, and runs on. Everything here is called from the event loop's thread.

Time: APScheduler reads the wall clock (``datetime.now(timezone)``), so a clock that is set back by an hour would stop
every job for an hour. The time zone is the one part of that which it lets us give, and ``now`` asks
the zone: ``_Monotonic`` answers with the monotonic clock. Periods then hold whatever happens to the wall clock, and the
time that a machine sleeps does not count.

Spread: APScheduler's ``jitter`` stretches every period, so each job has a fixed offset instead, from its name.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_SUBMITTED, JobSubmissionEvent
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from structlog.contextvars import bind_contextvars, clear_contextvars

from pinchpoint.snapshot import JobReport

log = structlog.get_logger(__name__)

LONGEST_SPREAD_SECONDS = 5.0  # a job of a long period starts soon all the same
UNWIND_SECONDS = 0.5  # for a cancelled run to close what it opened


class Scheduler:
    """Runs jobs by name. ``clock`` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[str, _Job] = {}  # by name
        self._in_flight: dict[asyncio.Task[object], str] = {}
        self._numbers = count()  # a job that replaces another is another job to APScheduler
        self._engine = AsyncIOScheduler(
            timezone=_Monotonic(clock),
            # However late: one run for all that were missed. APScheduler's own default drops runs that are 1 s late.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._engine.add_listener(self._on_due, EVENT_JOB_SUBMITTED | EVENT_JOB_MAX_INSTANCES)

    def start(self) -> None:
        """Starts the clockwork; jobs given before begin now. Needs a running loop."""
        self._engine.start()

    def every(
        self,
        job: str,
        seconds: float,
        run: Callable[[], Awaitable[None]],
        *,
        offset_seconds: float | None = None,
        first_run_at_once: bool = False,
        on_skip: Callable[[], None] | None = None,
    ) -> None:
        """Runs ``run`` every ``seconds``, from ``offset_seconds`` after now (after ``start``) on.

        Without an offset the name gives one, the same at every start, within the period and 5 s. ``first_run_at_once``
        adds a run before: now, and then from one period and the offset on. Replaces a job of the same name, whose run
        in flight is cancelled and whose counts go on. A run that is due while the last one still goes is skipped and
        ``on_skip`` called.
        Raises ``ValueError`` when ``seconds`` is less than a millisecond or the offset negative.
        """
        if seconds < 0.001 or (offset_seconds is not None and offset_seconds < 0):
            raise ValueError(f"job {job}: every {seconds} s from {offset_seconds} s on is no schedule")
        if offset_seconds is None:
            offset_seconds = zlib.crc32(job.encode()) / 2**32 * min(seconds, LONGEST_SPREAD_SECONDS)
        report = self._jobs[job].report if job in self._jobs else JobReport(job=job)
        self.cancel(job)
        grid = _Grid(timedelta(seconds=seconds), timedelta(seconds=offset_seconds), first_run_at_once)
        self._jobs[job] = new = _Job(f"{job}#{next(self._numbers)}", run, grid, report, on_skip)
        self._engine.add_job(self._run, grid, args=[new], id=new.id, name=job)

    def cancel(self, job: str) -> None:
        """Ends a job: no further run, its run in flight is cancelled, its report is gone. Unknown names are fine."""
        if (gone := self._jobs.pop(job, None)) is not None:
            with suppress(JobLookupError):  # after a drain
                self._engine.remove_job(gone.id)
            if gone.task is not None:
                gone.task.cancel()

    def jobs(self) -> tuple[str, ...]:
        """The names of the jobs, sorted."""
        return tuple(sorted(self._jobs))

    def reports(self) -> tuple[JobReport, ...]:
        """How each job fares, in name order."""
        return tuple(self._jobs[name].report for name in self.jobs())

    async def drain(self, deadline_seconds: float) -> None:
        """Stops for good: no further run; runs in flight may end until the deadline and are cancelled then.

        Returns within the deadline and ``UNWIND_SECONDS``, also when a job ignores its cancellation. APScheduler's own
        shutdown waits for nothing and reports each run that it cancels as an error of the job.
        """
        if not self._engine.running:
            return
        self._engine.pause()
        self._engine.remove_all_jobs()
        await asyncio.sleep(0)  # a run that was submitted in this turn of the loop has begun after it
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=deadline_seconds)
        if late := set(self._in_flight):
            log.warning(
                "jobs are cancelled, they outlast the deadline", jobs=sorted(map(self._in_flight.__getitem__, late))
            )
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=UNWIND_SECONDS)
        self._engine.shutdown(wait=False)
        await asyncio.sleep(0)  # it posts its work to the loop,
        await asyncio.sleep(0)  # which posts once more

    async def _run(self, job: _Job) -> None:
        """One run, guarded: a job may raise what it likes, the clockwork goes on."""
        name = job.report.job
        if self._jobs.get(name) is not job:  # cancelled between its submission and its first step
            return
        clear_contextvars()  # else it has those of whoever started the scheduler
        bind_contextvars(job=name)
        task = asyncio.current_task()
        assert task is not None
        job.task = task
        self._in_flight[task] = name
        started = self._clock()
        try:
            await job.run()
            self._ended(job, started, None)
        except asyncio.CancelledError as stray:  # goes no further: to APScheduler it would be an error
            if not task.cancelling():
                self._ended(job, started, stray)
        except Exception as error:  # noqa: BLE001 - the guard of the runner: a defect of one job must not stop the others
            self._ended(job, started, error)
        finally:
            job.task = None
            del self._in_flight[task]

    def _ended(self, job: _Job, started: float, error: BaseException | None) -> None:
        job.report = replace(
            job.report,
            runs_total=job.report.runs_total + 1,
            failures_total=job.report.failures_total + (error is not None),
            last_duration_seconds=self._clock() - started,
        )
        text = "" if error is None else f"{type(error).__name__}: {error}"
        if error is not None and text != job.error:
            log.error("job failed", exc_info=error)
        elif error is None and job.error:
            log.info("job is well again")
        if job.skipping:
            log.info("job has ended, its runs go on", duration_seconds=round(self._clock() - started, 3))
        job.error, job.skipping = text, False

    def _on_due(self, event: JobSubmissionEvent) -> None:
        """Counts what a run that is due tells: how many before it were missed, and whether it is skipped itself."""
        job = self._jobs.get(event.job_id.rpartition("#")[0])
        if job is None or job.id != event.job_id:
            return
        slot = job.grid.slot(event.scheduled_run_times[-1])
        missed, job.slot = max(0, slot - job.slot - 1), slot
        skipped = event.code == EVENT_JOB_MAX_INSTANCES
        job.report = replace(
            job.report,
            missed_total=job.report.missed_total + missed,
            skipped_total=job.report.skipped_total + skipped,
        )
        if skipped and job.on_skip:
            job.on_skip()
        if skipped and not job.skipping:
            job.skipping = True
            log.info("job is still running, its runs are skipped meanwhile", job=job.report.job)


@dataclass(slots=True, eq=False)
class _Job:
    """One job as it was given, and what became of its runs."""

    id: str
    run: Callable[[], Awaitable[None]]
    grid: _Grid
    report: JobReport
    on_skip: Callable[[], None] | None = None
    task: asyncio.Task[object] | None = None  # of the run in flight
    slot: int = -1  # of the grid, the last that was due
    error: str = ""  # of the last run
    skipping: bool = False


class _Grid(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """Fixed times, a period apart, that no late run shifts. After a stall it leaps to the last time that is past."""

    def __init__(self, period: timedelta, offset: timedelta, at_once: bool) -> None:
        self._period, self._offset, self._at_once = period, offset, at_once
        self._anchor = datetime.max.replace(tzinfo=UTC)  # until the first time is asked for

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        if previous is None:
            self._anchor = now + self._offset + (self._period if self._at_once else timedelta())
            return now if self._at_once else self._anchor
        if previous < self._anchor:
            return self._anchor
        return previous + self._period * max(1, (now - previous) // self._period)

    def slot(self, at: datetime) -> int:
        """The number of a time on the grid; -1 is the run at once."""
        return -1 if at < self._anchor else round((at - self._anchor) / self._period)


class _Monotonic(tzinfo):
    """A "time zone" whose ``datetime.now`` is a monotonic clock's time since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def fromutc(self, _: datetime) -> datetime:  # what datetime.now(zone) asks
        return datetime(1970, 1, 1, tzinfo=self) + timedelta(seconds=self._clock())

    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta()

    def dst(self, _: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, _: datetime | None) -> str:
        return "monotonic"
