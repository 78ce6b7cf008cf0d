"""``pinchpoint diagnose --compare``: two recordings, before a change and after it, and whether it worked."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from pinchpoint.capacity import Comparison, MeasuredRun, compare, measured_run
from pinchpoint.cli.exits import fail
from pinchpoint.cli.page import Page
from pinchpoint.diagnosis import Thresholds, judge_recording
from pinchpoint.diagnosis.judgement import duration, percent
from pinchpoint.sources.recording import Recording, RecordingError, read_recording

_FIGURES = (
    "seconds",
    "arrivals_per_second",
    "in_flight",
    "prompt_tokens",
    "output_tokens",
    "client_ttft_seconds",
    "ttft_p50_seconds",
    "ttft_p95_seconds",
    "tpot_seconds",
    "output_tokens_per_second",
    "in_slo_share",
    "replicas",
)


def compared(before: Path, after: Path, step: float | None) -> Comparison:
    """The comparison of the engine that both recordings are of. Ends the command with a line where there is none."""
    runs = {folder: _read(folder, step) for folder in (before, after)}
    names = _names(before, runs[before], after, runs[after])
    told = [_measured(folder, runs[folder], name) for folder, name in zip((before, after), names, strict=True)]
    return compare(*told)


def comparison_as_json(found: Comparison) -> dict[str, Any]:
    """The object that is printed; a figure that is not known is not there."""
    return {
        "worked": found.worked,
        "comparable": found.worked is not None,
        "incomparable": list(found.incomparable),
        "changes": [asdict(change) for change in found.changes],
        "lessons": list(found.lessons),
        "before": _figures(found.before),
        "after": _figures(found.after),
    }


def print_comparison(found: Comparison) -> None:
    """The verdict, what changed, the figures side by side, and what follows."""
    page = Page()
    words, style = {
        True: ("It worked", "bold green"),
        False: ("It did not work", "bold red"),
        None: ("Not comparable", "bold yellow"),
    }[found.worked]
    page.head(Text(words, style))
    page.paragraphs("because", found.incomparable)
    page.paragraphs("changed", [f"{each.name}: {each.before} → {each.after}" for each in found.changes])
    page.gap()
    table = Table("", "before", "after", box=box.SIMPLE_HEAD if page.coloured else None, padding=(0, 2, 0, 0))
    for label, words_of in _ROWS.items():
        told = [words_of(run) for run in (found.before, found.after)]
        if any(told):
            table.add_row(f"  {label}", *(each or "unknown" for each in told))
    page.console.print(table)
    page.gap()
    page.paragraphs("so", found.lessons)


def _told(pick: Callable[[MeasuredRun], float | None], words: Callable[[float], str]) -> Callable[[MeasuredRun], str]:
    def told(run: MeasuredRun) -> str:
        value = pick(run)
        return "" if value is None else words(value)

    return told


_ROWS: Mapping[str, Callable[[MeasuredRun], str]] = {
    "class": lambda run: str(run.bottleneck),
    "in SLO": _told(lambda run: run.in_slo_share, percent),
    "TTFT of our probes": _told(lambda run: run.client_ttft_seconds, duration),
    "TTFT p50": _told(lambda run: run.ttft_p50_seconds, duration),
    "TTFT p95": _told(lambda run: run.ttft_p95_seconds, duration),
    "TPOT mean": _told(lambda run: run.tpot_seconds, duration),
    "tokens made a second": _told(lambda run: run.output_tokens_per_second, lambda n: f"{n:,.0f}"),
    "requests a second": _told(lambda run: run.arrivals_per_second, lambda n: f"{n:.2f}"),
    "requests in flight": _told(lambda run: run.in_flight, lambda n: f"{n:.0f}"),
    "prompt tokens": _told(lambda run: run.prompt_tokens, lambda n: f"{n:,.0f}"),
    "answer tokens": _told(lambda run: run.output_tokens, lambda n: f"{n:,.0f}"),
    "replicas": lambda run: str(run.replicas),
}


def _read(folder: Path, step: float | None) -> Recording:
    try:
        return read_recording(folder, step)
    except RecordingError as error:
        fail(str(error))


def _names(before: Path, then: Recording, after: Path, now: Recording) -> tuple[str, str]:
    """The service of each; of several side by side the only one that both have."""
    if then.service is not None and now.service is not None:
        return then.service, now.service
    names = [{recording.service} if recording.service else set(recording.engines) for recording in (then, now)]
    both = names[0] & names[1]
    if len(both) != 1:
        fail(f"{before} and {after} have {len(both)} engines in common; record the one to compare in each")
    name = both.pop()
    return name, name


def _measured(folder: Path, recording: Recording, engine: str) -> MeasuredRun:
    verdict = judge_recording(recording.snapshots, engine, Thresholds())
    run = measured_run(recording.snapshots, engine, verdict.diagnosis)
    if run is None:
        fail(f"{folder}: {engine} served no request in it; record while it works")
    return run


def _figures(run: MeasuredRun) -> dict[str, Any]:
    told = {name: value for name in _FIGURES if (value := getattr(run, name)) is not None}
    return {"class": str(run.bottleneck), **told}
