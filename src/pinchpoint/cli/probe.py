"""``pinchpoint probe``: one synthetic request to each target, side by side."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinchpoint.cli.check_probe import check_probe
from pinchpoint.cli.exits import BAD_NEWS, fail, fail_over
from pinchpoint.cli.probe_cost import Till

if TYPE_CHECKING:
    from pinchpoint.config import Settings
    from pinchpoint.snapshot import ProbeReading
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

MAX_NAME = 63  # of a target; a URL may be longer


def probe(
    targets: Annotated[
        list[str] | None, typer.Argument(help="URLs of OpenAI-compatible APIs, or names from the configuration.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config.file", help="Configuration that names the targets.")] = None,
    model: Annotated[str | None, typer.Option(help="Model name. Default: the first that the API lists.")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="File that holds the API key for the URLs given.")] = None,
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

    Exit code 0: every target answered; 1: one did not; 2: wrong usage or input.

    \b
    Examples:
      pinchpoint probe http://127.0.0.1:8000
      pinchpoint probe chat hosted --config.file /etc/pinchpoint/pinchpoint.yaml
      pinchpoint probe --check ~/.codex/config.toml
    """
    options = {"model": model, "api_key_file": api_key_file}
    if check:
        check_probe(targets or (), config, options, free=free, as_json=as_json)
        return
    if not targets:
        fail("name a target: a URL, or a name from --config.file")
    from pinchpoint.snapshot import ProbeOutcome

    settings = _settings(config)
    chosen = _chosen(targets, settings, options)
    readings = asyncio.run(_probe_all(chosen, settings))
    if as_json:
        print(json.dumps([_plain(asdict(reading)) for reading in readings], indent=2))
    else:
        _print_table(readings)
    if len(readings) < len(chosen) or any(reading.outcome is not ProbeOutcome.OK for reading in readings):
        raise typer.Exit(BAD_NEWS)


def _settings(config: Path | None) -> "Settings":
    from pinchpoint.config import ConfigError, Settings, load

    try:
        return load(config) if config else Settings()
    except ConfigError as error:
        fail(str(error))


def _chosen(targets: Sequence[str], settings: "Settings", options: dict[str, Any]) -> "list[ProbeTargetSettings]":
    """Each target as the configuration names it, or a URL with the options given."""
    from pydantic import ValidationError

    from pinchpoint.sources.probe.settings import ProbeTargetSettings

    configured = {target.name: target for target in settings.probes.targets}
    chosen = []
    for target in targets:
        if target in configured:
            chosen.append(configured[target])
            continue
        if "://" not in target:
            known = f"configured are: {', '.join(configured) or 'none'}"
            fail(f"{target}: neither a URL nor a configured target ({known}); write http://HOST:PORT")
        try:
            chosen.append(ProbeTargetSettings(name=target[:MAX_NAME], url=target, **options))
        except ValidationError as error:
            fail_over(target, error)
    return chosen


async def _probe_all(targets: "Sequence[ProbeTargetSettings]", settings: "Settings") -> "list[ProbeReading]":
    """The readings of all whose probe was sent: a hosted one costs money, and its caps may forbid it."""
    from pinchpoint.sources.probe import Prober

    probers = [Prober(target, clock=time.time) for target in targets]  # `at` is read by others: Unix time
    till = Till(settings)
    try:
        pairs = zip(targets, probers, strict=True)
        readings = await asyncio.gather(*(till.probe(target, prober) for target, prober in pairs))
        return [reading for reading in readings if reading is not None]
    finally:
        till.close()
        for prober in probers:
            await prober.close()


def _plain(reading: dict[str, Any]) -> dict[str, Any]:
    """Without what is unknown or empty, and without whether the connection was new: in one request it says nothing."""
    return {
        key: value
        for key, value in reading.items()
        if value is not None and value not in ("", {}) and key != "connection"
    }


def _print_table(readings: "Sequence[ProbeReading]") -> None:
    from rich.console import Console
    from rich.table import Table

    def milliseconds(value: float | None) -> str:
        return "–" if value is None else f"{value * 1000:.1f} ms"

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for reading in readings:
        table.add_column(reading.target, justify="right", overflow="fold")
    table.add_row("outcome", *(str(r.outcome) for r in readings))
    table.add_row("TTFT", *(milliseconds(r.ttft_seconds) for r in readings), style="bold")
    table.add_row("TPOT", *(milliseconds(r.tpot_seconds) for r in readings), style="bold")
    for phase in dict.fromkeys(phase for r in readings for phase in r.phases):
        table.add_row(f"  {phase}", *(milliseconds(r.phases.get(phase)) for r in readings), style="dim")
    table.add_row("duration", *(milliseconds(r.duration_seconds) for r in readings))
    table.add_row("tokens", *("–" if r.completion_tokens is None else str(r.completion_tokens) for r in readings))
    table.add_row(
        "stream", *("buffered" if r.buffered else "–" if r.ttft_seconds is None else "flows" for r in readings)
    )
    console = Console(highlight=False, markup=False)  # a server's words may look like markup
    console.print(table)
    for reading in readings:
        if reading.remedy:
            console.print(f"{reading.target}: {reading.detail or reading.outcome}. {reading.remedy}")
