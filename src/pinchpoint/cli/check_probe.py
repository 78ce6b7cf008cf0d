"""``pinchpoint probe --check``: is it the URL, the key or the model?"""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail, fail_over

if TYPE_CHECKING:
    from pinchpoint.config import Settings
    from pinchpoint.sources.probe.check import Check, Triple
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

_MARKS = {"fine": "ok  ", "wrong": "FAIL", "unsure": "?   ", "skipped": "-   "}
_THE = {
    "url": "the base URL",
    "key": "the key",
    "model": "the model",
    "network": "the way there",
    "account": "the account",
    "server": "the server",
    "request": "the request",
}


def check_probe(
    targets: Sequence[str], settings: "Settings", options: dict[str, Any], *, free: bool, as_json: bool
) -> None:
    """Checks each target of the configuration, URL or file of a coding tool; without any, all that are configured."""
    chosen = _chosen(targets, settings, options)
    if not chosen:
        fail("nothing to check: name a URL, a file of a coding tool, or a target of --config.file")
    checks = asyncio.run(_check_all(chosen, settings, free=free))
    if as_json:
        print(json.dumps([asdict(each) for each in checks], indent=2, ensure_ascii=False))
    else:
        for each in checks:
            _print(each)
    if any(each.wrong for each in checks):
        raise typer.Exit(BAD_NEWS)


def _chosen(
    targets: Sequence[str], settings: "Settings", options: dict[str, Any]
) -> "list[ProbeTargetSettings | Triple]":
    from pydantic import ValidationError

    from pinchpoint.config import ConfigError
    from pinchpoint.sources.probe.check import ToolFileError

    configured = {target.name: target for target in settings.probes.targets}
    if not targets:
        return list(configured.values())
    chosen: list[ProbeTargetSettings | Triple] = []
    for target in targets:
        if target in configured:
            chosen.append(configured[target])
        elif "://" in target:
            try:
                chosen.append(_of_url(target, options))
            except ValidationError as error:
                fail_over(target, error)
        elif Path(target).exists():
            try:
                chosen += _of_file(Path(target))
            except (ConfigError, ToolFileError) as error:
                fail(str(error))
        else:
            fail(f"{target}: no configured target, no URL and no file; write http://HOST:PORT, or name a file")
    return chosen


def _of_file(path: Path) -> "Sequence[ProbeTargetSettings | Triple]":
    """The targets of a configuration of pinchpoint's, or what a tool's configuration describes."""
    from pinchpoint.config import load
    from pinchpoint.sources.probe.check import ToolFileError, triples_in

    if path.suffix not in (".yaml", ".yml"):
        return triples_in(path, os.environ)
    if targets := load(path).probes.targets:
        return targets
    raise ToolFileError(f"{path}: has no probe target; add one to probes.targets")


def _of_url(url: str, options: dict[str, Any]) -> "ProbeTargetSettings":
    """A target at ``url``. Without a model the API's list names one."""
    from pinchpoint.snapshot import Placement
    from pinchpoint.sources.http.base_url import is_loopback
    from pinchpoint.sources.probe.check import UNNAMED
    from pinchpoint.sources.probe.settings import MAX_NAME, ProbeTargetSettings

    given = {name: value for name, value in options.items() if value is not None}
    if "preset" not in given and not is_loopback(url):
        given["placement"] = Placement.HOSTED  # nobody knows who answers there: it counts in the ledger
    return ProbeTargetSettings(name=url[:MAX_NAME], url=url, **{"model": UNNAMED, **given})


async def _check_all(
    chosen: "Sequence[ProbeTargetSettings | Triple]", settings: "Settings", *, free: bool
) -> "list[Check]":
    """What the requests of hosted targets cost counts in the ledger, and its caps hold."""
    from pinchpoint.cli.probe_cost import Till
    from pinchpoint.sources.probe.check import Triple, check, check_target

    till = Till(settings)
    try:
        return await asyncio.gather(
            *(
                check(each, free=free, environment=os.environ, send=till.probe)
                if isinstance(each, Triple)
                else check_target(each, free=free, environment=os.environ, send=till.probe)
                for each in chosen
            )
        )
    finally:
        till.close()


def _print(check: "Check") -> None:
    from pinchpoint.sources.probe.check import Part

    _say(check.name)
    for part, value in ((Part.URL, check.url), (Part.KEY, check.key_hint), (Part.MODEL, check.model or "none")):
        place = f"  ({check.places[part]})" if part in check.places else ""
        _say(f"  {part:<6}{value}{place}")
    for step in check.steps:
        _say(f"  {_MARKS[step.state]}  {step.name:<8} {step.said}".rstrip())
    for finding in check.wrong:
        _say(f"  wrong: {_THE[finding.part]}: {finding.what.rstrip('.')}. Remedy: {finding.remedy.rstrip('.')}.")
    for note in check.notes:
        _say(f"  note: {note.what}; {note.remedy.rstrip('.')}.")
    if not check.wrong:
        _say("  nothing is wrong that was tested")


def _say(line: str) -> None:
    """A line of the report. A file or a server may have put the orders of a terminal into it, which are left out."""
    print("".join(character for character in line if character.isprintable()))
