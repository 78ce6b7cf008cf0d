"""Folds every alert over what a server remembers, a few at a time."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from pinchpoint.alerting import Alert
from pinchpoint.alerting.backtest import Backtest, Firing, evaluation_times
from pinchpoint.alerting.promql import compile_expr
from pinchpoint.alerting.state import Result
from pinchpoint.sources.http import HttpClient
from pinchpoint.sources.prometheus import PrometheusHistory, PrometheusSettings, QueryError

AT_ONCE = 3  # queries: a server that also has to evaluate its rules is left room
SEEN = "pinchpoint_build_info"  # is there whenever pinchpoint was scraped


T = TypeVar("T")


class History(Protocol):
    """Whatever remembers the past."""

    def steps(self, expr: str, times: Sequence[float]) -> AsyncIterator[tuple[float, Result]]:
        """What an expression yields at each of ``times``. Raises ``QueryError``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtested:
    """One alert. ``data`` tells of each metric that it names at which share of the evaluations there was any."""

    alert: Alert
    firings: tuple[Firing, ...] = ()
    data: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""  # one line, where there was no answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All alerts. ``times`` are the evaluations since pinchpoint was first seen, at ``seen_share`` of which it was."""

    times: Sequence[float]
    interval: float
    seen_share: float = 0.0
    alerts: tuple[Backtested, ...] = ()
    warnings: tuple[str, ...] = ()


async def backtest_all(
    settings: PrometheusSettings, alerts: Sequence[Alert], start: float, end: float, interval: float
) -> Report:
    """Asks the server, with progress where a terminal watches. Raises ``QueryError`` where it answers nothing."""
    async with HttpClient() as client:
        history = PrometheusHistory(settings, client, time.monotonic)
        report = await backtest_over(history, alerts, evaluation_times(start, end, interval), interval)
        return replace(report, warnings=tuple(history.warnings))


async def backtest_over(history: History, alerts: Sequence[Alert], times: Sequence[float], interval: float) -> Report:
    """All alerts at those ``times``, ``interval`` seconds apart, from the first at which pinchpoint was seen."""
    seen = [at async for at, result in history.steps(f"count({SEEN})", times) if result]
    if not seen:
        return Report(times=(), interval=interval)
    times = times[times.index(seen[0]) :]
    names = {alert.name: list(compile_expr(alert.expr).needs) for alert in alerts}
    metrics = sorted(set().union(*names.values()))
    with _progress(len(alerts) + len(metrics)) as advance:
        shares = await _few_at_once([partial(_share, history, metric, times) for metric in metrics], advance)
        data = {metric: share for metric, share in zip(metrics, shares, strict=True) if share is not None}
        tested = await _few_at_once([partial(_tested, history, alert, times) for alert in alerts], advance)
    told = tuple(replace(each, data={m: data[m] for m in names[each.alert.name] if m in data}) for each in tested)
    return Report(times=times, interval=interval, seen_share=len(seen) / len(times), alerts=told)


async def _share(history: History, metric: str, times: Sequence[float]) -> float | None:
    """At which share of the evaluations the metric had any series; ``None`` where the server does not say."""
    try:
        return sum([1 async for _, result in history.steps(f"count({metric})", times) if result]) / len(times)
    except QueryError as error:
        if not error.refused:
            raise
        return None


async def _tested(history: History, alert: Alert, times: Sequence[float]) -> Backtested:
    test = Backtest(alert)
    try:
        async for at, result in history.steps(alert.expr, times):
            test.look(at, result)
    except QueryError as error:
        if not error.refused:
            raise
        return Backtested(alert=alert, failure=str(error))
    return Backtested(alert=alert, firings=test.firings())


async def _few_at_once(work: Iterable[Callable[[], Awaitable[T]]], advance: Callable[[], None]) -> list[T]:
    """What each yields, in order."""
    room = asyncio.Semaphore(AT_ONCE)

    async def done(piece: Callable[[], Awaitable[T]]) -> T:
        async with room:
            result = await piece()
        advance()
        return result

    return await asyncio.gather(*map(done, work))


@contextmanager
def _progress(pieces: int) -> Iterator[Callable[[], None]]:
    columns = ("asking", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    terminal = sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not terminal) as progress:
        task = progress.add_task("ask", total=pieces)
        yield lambda: progress.advance(task)
