"""``pinchpoint probe``: synthetic requests to all targets at once, side by side."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinchpoint.cli.check_probe import check_probe
from pinchpoint.cli.exits import BAD_NEWS, fail, fail_over

if TYPE_CHECKING:
    from pinchpoint.config import Settings
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

MAX_REPEAT = 1000


def probe(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="URLs of APIs, or names from the configuration. Without: all that are configured."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config.file", help="Configuration that names the targets.")] = None,
    model: Annotated[str | None, typer.Option(help="Model name. Default: the first that the API lists.")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="File that holds the API key for the URLs given.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Provider or engine by name: taotoken, openai, vllm, … A URL is not needed then.")
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help="API of the URLs given: openai_chat, openai_responses, anthropic, gemini, …")
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, max=MAX_REPEAT, help="Probes of each target, one after the other: medians and spread.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Test base URL, key and model step by step instead. Files of Codex, Claude Code, Cline and CC Switch "
            "are targets too.",
        ),
    ] = False,
    free: Annotated[bool, typer.Option("--free", help="With --check: send nothing that is billed.")] = False,
) -> None:
    """Send one streaming request to each target: phases, TTFT, TPOT, outcome and what to do about a failure.

    Local targets are held against the hosted ones. A hosted one is billed, and asked within its caps only.
    Exit code 0: every target answered; 1: one did not; 2: wrong usage or input.

    \b
    Examples:
      pinchpoint probe http://127.0.0.1:8000
      pinchpoint probe http://127.0.0.1:8000 https://taotoken.net/api --repeat 5
      pinchpoint probe --preset taotoken
      pinchpoint probe chat hosted --config.file /etc/pinchpoint/pinchpoint.yaml
      pinchpoint probe --check ~/.codex/config.toml
    """
    options = {"model": model, "api_key_file": api_key_file, "preset": preset, "dialect": dialect}
    given = {name: value for name, value in options.items() if value is not None}
    settings = _settings(config)
    if check:
        check_probe(targets or (), settings, given, free=free, as_json=as_json)
        return
    _answer(_chosen(targets or (), settings, given), settings, repeat, as_json=as_json)


def _answer(chosen: "Sequence[ProbeTargetSettings]", settings: "Settings", repeat: int, *, as_json: bool) -> None:
    from pinchpoint.cli.probe_report import answer_of, print_report
    from pinchpoint.cli.probe_rounds import ask_all
    from pinchpoint.snapshot import ProbeOutcome, compared

    every = ask_all(chosen, settings, repeat)
    readings = [asked.readings for asked in every]
    found = compared(readings, time.time(), last=repeat, at_least=1)
    comparisons = [comparison for comparison in found if comparison.local.probes]  # of others the outcome says it
    if as_json:
        print(json.dumps(answer_of(every, comparisons, settings.diagnosis), indent=2))
    else:
        print_report(every, comparisons, settings.diagnosis)
    failed = any(reading.outcome is not ProbeOutcome.OK for each in readings for reading in each)
    if failed or any(asked.skip is not None for asked in every):
        raise typer.Exit(BAD_NEWS)


def _settings(config: Path | None) -> "Settings":
    from pinchpoint.config import ConfigError, load

    try:
        return load(config)
    except ConfigError as error:
        fail(str(error))


def _chosen(targets: Sequence[str], settings: "Settings", options: dict[str, Any]) -> "list[ProbeTargetSettings]":
    """Each target as the configuration names it, or a URL with the options given."""
    configured = {target.name: target for target in settings.probes.targets}
    if not targets and "preset" in options:
        return [_made(options)]
    if not targets and not configured:
        fail("no target is configured; give a URL, like http://127.0.0.1:8000, or --config.file")
    chosen = []
    for target in targets or configured:
        if target in configured:
            chosen.append(configured[target])
        elif "://" in target:
            chosen.append(_made(options, target))
        else:
            known = f"configured are: {', '.join(configured) or 'none'}"
            fail(f"{target}: neither a URL nor a configured target ({known}); write http://HOST:PORT")
    return chosen


def _made(options: dict[str, Any], url: str = "") -> "ProbeTargetSettings":
    from pydantic import ValidationError

    from pinchpoint.sources.probe.settings import MAX_NAME, ProbeTargetSettings

    place = {"name": url[:MAX_NAME], "url": url} if url else {}
    try:
        return ProbeTargetSettings(**{**place, **options})
    except ValidationError as error:
        fail_over(url or options["preset"], error)
