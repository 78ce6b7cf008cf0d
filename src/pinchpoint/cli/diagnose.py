"""``pinchpoint diagnose``: watch for a while, or read a recording, and explain."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail


def diagnose(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL...]", help="Engines to watch. Default: those found on loopback.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Explain a recording (a folder; see `run --record`) instead of watching.")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="BEFORE AFTER", help="Say whether a change worked: a recording before it and one after."),
    ] = None,
    step: Annotated[
        float | None,
        typer.Option(min=0.01, help="Seconds between the recording's scrapes. Default: as its meta.json says, else 1."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="How long to watch.")] = 20.0,
    bearer_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token that the URLs ask for.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="Authority that signed the URLs' certificates, PEM, instead of the system's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Name the bottleneck, with evidence, what is missing and what to do.

    Exit code 0: every engine is healthy, idle or sleeping (--compare: it worked); 1: anything else; 2: wrong usage or
    input (--compare: the recordings can't be compared).

    \b
    Examples:
      pinchpoint diagnose http://127.0.0.1:8000 --seconds 30
      pinchpoint diagnose https://chat.example:8443 --ca-file ca.pem --bearer-token-file token
      pinchpoint diagnose --replay recording/ --json
      pinchpoint diagnose --compare before/ after/
    """
    if compare is not None:
        if urls or replay is not None:
            fail("--compare takes two recordings and nothing else: no URL, no --replay")
        _compare(*compare, step, as_json=as_json)
    if replay is not None and urls:
        fail("give URLs to watch or --replay, not both")
    from pinchpoint.cli.explain import GOOD_NEWS, print_answer

    if (bearer_token_file or ca_file) and not urls:
        fail("--bearer-token-file and --ca-file are for the URLs that are given; give one")
    access: dict[str, Any] = {"bearer_token_file": bearer_token_file, "tls": {"ca_file": ca_file}}
    answer = _replayed(replay, step) if replay is not None else _watched(urls or [], seconds, access)
    if as_json:
        print(json.dumps(answer, indent=2))
    else:
        print_answer(answer)
    answers = [answer] if "class" in answer else list(answer["engines"].values())
    if any(one["class"] not in GOOD_NEWS for one in answers):
        raise typer.Exit(BAD_NEWS)


def _compare(before: Path, after: Path, step: float | None, *, as_json: bool) -> NoReturn:
    from pinchpoint.cli.compare import compared, comparison_as_json, print_comparison

    found = compared(before, after, step)
    if as_json:
        print(json.dumps(comparison_as_json(found), indent=2))
    else:
        print_comparison(found)
    if found.worked is None:
        fail(f"{before} and {after} can't be compared: {'; '.join(found.incomparable)}")
    raise typer.Exit(0 if found.worked else BAD_NEWS)


def _replayed(folder: Path, step: float | None) -> dict[str, Any]:
    from pinchpoint.cli.answer import answer_of, findings_of
    from pinchpoint.cli.topology import topology_of
    from pinchpoint.diagnosis import Thresholds, judge_recording
    from pinchpoint.sources.recording import RecordingError, read_recording

    try:
        recording = read_recording(folder, step)
    except RecordingError as error:
        fail(str(error))
    thresholds = Thresholds()

    def answer(engine: str) -> dict[str, Any]:
        return answer_of(judge_recording(recording.snapshots, engine, thresholds))

    engines = {name: answer(name) for name in recording.engines if name != recording.service}
    whole = {} if recording.service is None else answer(recording.service)
    return {
        **whole,
        **({"engines": engines} if engines else {}),
        "topology": topology_of(recording.snapshots),
        "findings": findings_of(recording.snapshots),
    }


def _watched(urls: list[str], seconds: float, access: dict[str, Any]) -> dict[str, Any]:
    from pinchpoint.cli.answer import answer_of, findings_of
    from pinchpoint.cli.topology import topology_of
    from pinchpoint.cli.watch import watch
    from pinchpoint.diagnosis import Thresholds, judge_recording

    targets, snapshots = asyncio.run(watch(urls, seconds, access))
    if not targets:
        fail("no engine found on loopback; start one, or name its URL: pinchpoint diagnose http://HOST:PORT")
    thresholds = Thresholds()
    answers = {target.engine: answer_of(judge_recording(snapshots, target.engine, thresholds)) for target in targets}
    only = next(iter(answers.values()))
    return {
        **(only if len(answers) == 1 else {"engines": answers}),
        "topology": topology_of(snapshots),
        "findings": findings_of(snapshots),
    }
