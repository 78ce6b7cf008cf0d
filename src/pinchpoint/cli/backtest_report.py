"""What ``pinchpoint rules backtest`` answers: a table for people, an object for machines."""

import time
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from pinchpoint.alerting.backtest import Firing, firing_seconds
from pinchpoint.cli.backtesting import Backtested, Report
from pinchpoint.cli.duration import duration_of
from pinchpoint.cli.page import Page

MOST_LINES = 200  # times that are listed of one alert
FILE_WIDTH = 130  # cells of the table where no terminal watches: nothing wraps


def as_object(report: Report) -> dict[str, Any]:
    """The object that is printed. Times are Unix seconds; ``ended`` is null where the alert fired until the end."""
    return {
        "start": report.times[0],
        "end": report.times[-1],
        "interval_seconds": report.interval,
        "seen_share": round(report.seen_share, 4),
        "alerts": [_alert_object(each, report.times[-1]) for each in report.alerts],
        "warnings": list(report.warnings),
    }


def print_report(report: Report, *, each_time: bool) -> None:
    """A line for each alert; with ``each_time`` also when it fired, and for what."""
    page = Page()
    if not page.console.is_terminal:
        page.console.width = FILE_WIDTH
    start, end = report.times[0], report.times[-1]
    page.head(Text(f"{_date(start)} to {_date(end)}, every {duration_of(report.interval)}", "bold"))
    page.paragraphs("seen", [f"pinchpoint was there at {_percent(report.seen_share)} of the evaluations"])
    page.gap()
    table = Table(box=box.SIMPLE_HEAD if page.coloured else None, padding=(0, 2, 0, 0))
    table.add_column("alert", overflow="fold")
    table.add_column("severity", no_wrap=True)
    for title in ("times", "firing for", "longest"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("last", no_wrap=True)
    table.add_column("data", justify="right", no_wrap=True)
    for each in report.alerts:
        table.add_row(each.alert.name, each.alert.severity, *_cells(each, end), _percent(_data(each)))
    page.console.print(table)
    unseen = sorted({name for each in report.alerts for name, share in each.data.items() if share == 0})
    page.paragraphs("never seen", unseen)
    if each_time:
        for each in report.alerts:
            page.gap()
            page.head(Text(each.alert.name, "bold"))
            page.paragraphs("", list(_lines(each, end)))


def _cells(each: Backtested, end: float) -> tuple[str, str, str, str]:
    if each.failure:
        return "?", "?", "?", "no answer"
    if not each.firings:
        return "0", "", "", ""
    longest = max((firing.ended_at or end) - firing.fired_at for firing in each.firings)
    last = "now" if any(firing.ended_at is None for firing in each.firings) else _date(each.firings[-1].fired_at)
    return str(len(each.firings)), duration_of(firing_seconds(each.firings, end)), duration_of(longest), last


def _lines(each: Backtested, end: float) -> Iterator[str]:
    for firing in each.firings[-MOST_LINES:]:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(firing.labels))
        ended = firing.ended_at
        yield f"{_date(firing.fired_at)}  {duration_of((ended or end) - firing.fired_at)}  {labels}"
    if len(each.firings) > MOST_LINES:
        yield f"and {len(each.firings) - MOST_LINES} earlier ones; --json has all"
    if not each.firings:
        yield "no answer" if each.failure else "never"


def _alert_object(each: Backtested, end: float) -> dict[str, Any]:
    return {
        "alert": each.alert.name,
        "severity": str(each.alert.severity),
        "times": len(each.firings),
        "firing_seconds": firing_seconds(each.firings, end),
        "firings": [_firing_object(firing) for firing in each.firings],
        "data_share": {name: round(share, 4) for name, share in each.data.items()},
        **({"failure": each.failure} if each.failure else {}),
    }


def _firing_object(firing: Firing) -> dict[str, Any]:
    return {"labels": dict(sorted(firing.labels)), "fired": firing.fired_at, "ended": firing.ended_at}


def _data(each: Backtested) -> float:
    """Of the metric that was there least: without it the alert sees less than it should."""
    return min(each.data.values(), default=1.0)


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) + "Z"


def _percent(share: float) -> str:
    return "100 %" if share == 1 else f"{min(99.9, 100 * share):.1f} %"
