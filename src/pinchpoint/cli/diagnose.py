"""``pinchpoint diagnose``: watch for a while, or read a recording, and explain."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail

if TYPE_CHECKING:
    from pinchpoint.diagnosis.timeline import RecordingVerdict
    from pinchpoint.snapshot import EngineTarget, Snapshot

GOOD_NEWS = ("healthy", "idle", "sleeping")


def diagnose(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL...]", help="Engines to watch. Default: those found on loopback.")
    ] = None,
    replay: Annotated[Path | None, typer.Option(help="Explain a recording (a folder) instead of watching.")] = None,
    step: Annotated[float | None, typer.Option(min=0.01, help="Seconds between the recording's scrapes.")] = None,
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="How long to watch.")] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Name the bottleneck, with evidence, what is missing and what to do.

    Exit code 0: healthy or idle; 1: anything else.

    Example: pinchpoint diagnose http://127.0.0.1:8000 --seconds 30
    Example: pinchpoint diagnose --replay recording/ --json
    """
    if replay is not None and urls:
        fail("give URLs to watch or --replay, not both")
    answer = _replayed(replay, step) if replay is not None else _watched(urls or [], seconds)
    if as_json:
        print(json.dumps(answer, indent=2))
    else:
        _print(answer)
    answers = [answer] if "class" in answer else list(answer["engines"].values())
    if any(one["class"] not in GOOD_NEWS for one in answers):
        raise typer.Exit(BAD_NEWS)


def _replayed(folder: Path, step: float | None) -> dict[str, Any]:
    from pinchpoint.diagnosis import Thresholds, judge_recording
    from pinchpoint.sources.recording import RecordingError, read_recording

    try:
        recording = read_recording(folder, step)
    except RecordingError as error:
        fail(str(error))
    thresholds = Thresholds()
    answer = _answer(judge_recording(recording.snapshots, recording.service, thresholds))
    others = [name for name in recording.engines if name != recording.service]
    if others:
        answer["engines"] = {name: _answer(judge_recording(recording.snapshots, name, thresholds)) for name in others}
    return answer


def _watched(urls: list[str], seconds: float) -> dict[str, Any]:
    from pinchpoint.diagnosis import Thresholds, judge_recording

    targets, snapshots = asyncio.run(_watch(urls, seconds))
    if not targets:
        fail("no engine found on loopback; start one, or name its URL: pinchpoint diagnose http://HOST:PORT")
    thresholds = Thresholds()
    answers = {target.engine: _answer(judge_recording(snapshots, target.engine, thresholds)) for target in targets}
    only = next(iter(answers.values()))
    return only if len(answers) == 1 else {"engines": answers}


async def _watch(urls: list[str], seconds: float) -> "tuple[Sequence[EngineTarget], list[Snapshot]]":
    from pydantic import ValidationError
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeRemainingColumn

    from pinchpoint.config import ConfigError, load
    from pinchpoint.daemon.board import Board
    from pinchpoint.daemon.node import this_node
    from pinchpoint.sources.discovery import find_engines
    from pinchpoint.sources.engine import EngineScraper, open_session
    from pinchpoint.sources.engine.settings import EngineSettings

    try:
        settings = load()
    except ConfigError as error:
        fail(str(error))
    node = this_node(settings)
    board = Board(settings, node.gpus, node.links)
    snapshots: list[Snapshot] = []
    async with open_session() as session:
        try:
            given = [
                EngineSettings(name=url.split("://")[-1].rstrip("/")[:100] or "engine", url=url).target()
                for url in urls
            ]
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            fail(f"{first['msg'].removeprefix('Value error, ')}")
        targets = tuple(given) or await find_engines(session)
        if not targets:
            return (), []
        board.expect_engines(targets, time.monotonic())
        scrapers = [(t.engine, EngineScraper(t, session, settings.engines)) for t in targets]
        node.gpus.start()
        started = time.monotonic()
        columns = (SpinnerColumn(), "watching {task.fields[names]}", TimeRemainingColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("watch", total=seconds, names=", ".join(t.engine for t in targets))
            while (elapsed := time.monotonic() - started) < seconds:
                progress.update(task, completed=elapsed)
                due = time.monotonic() + 1.0
                for name, outcome in zip(
                    (name for name, _ in scrapers),
                    await asyncio.gather(*(scraper.scrape(time.monotonic) for _, scraper in scrapers)),
                    strict=True,
                ):
                    board.put_engine(name, outcome, 0.0)
                snapshots.append(board.snapshot(time.monotonic(), 0.0)[0])
                await asyncio.sleep(max(0.0, due - time.monotonic()))
    node.gpus.stop()
    return targets, snapshots


def _answer(verdict: "RecordingVerdict") -> dict[str, Any]:
    from pinchpoint.capacity import judge_scaling

    diagnosis = verdict.diagnosis
    scaling = judge_scaling(diagnosis)
    return {
        "engine": diagnosis.engine,
        "class": str(diagnosis.bottleneck),
        "why": diagnosis.why,
        "runner_up": None if diagnosis.runner_up is None else str(diagnosis.runner_up),
        "confidence": round(diagnosis.confidence_ratio, 3),
        "scores": {str(name): round(score, 3) for name, score in diagnosis.scores.items()},
        "evidence": [
            {
                "signal": fact.signal,
                "text": fact.text,
                **({} if fact.value is None else {"value": fact.value}),
                **({} if fact.threshold is None else {"threshold": fact.threshold}),
            }
            for fact in diagnosis.evidence
        ],
        "missing": list(diagnosis.missing),
        "advice": [{"action": lever.action, "text": lever.text} for lever in diagnosis.advice],
        "more_gpus_help": scaling.more_gpus_help,
        "more_gpus_reason": scaling.reason,
        "timeline": [
            {"start": interval.start, "end": interval.end, "class": str(interval.bottleneck)}
            for interval in verdict.timeline
        ],
    }


def _print(answer: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for one in ([answer] if "class" in answer else []) + list(answer.get("engines", {}).values()):
        helps = {True: "yes", False: "no", None: "can't tell"}[one["more_gpus_help"]]
        console.print(f"{one['engine']}: {one['class']}", style="bold", markup=False, soft_wrap=True, end="")
        console.print(f"  (confidence {one['confidence']:.0%})", soft_wrap=True)
        console.print(f"  {one['why']}", markup=False, soft_wrap=True)
        for title, lines in (
            ("evidence", [fact["text"] for fact in one["evidence"]]),
            ("missing", one["missing"]),
            ("advice", [lever["text"] for lever in one["advice"]]),
        ):
            for number, line in enumerate(lines):
                console.print(f"  {title if number == 0 else '':<10}{line}", markup=False, soft_wrap=True)
        if one["runner_up"]:
            console.print(f"  {'runner-up':<10}{one['runner_up']}")
        console.print(f"  {'more GPUs':<10}{helps}: {one['more_gpus_reason']}", markup=False, soft_wrap=True)
        steps = ", ".join(f"{t['start']:.0f}–{t['end']:.0f} s {t['class']}" for t in one["timeline"])
        console.print(f"  {'timeline':<10}{steps}", markup=False, soft_wrap=True)
