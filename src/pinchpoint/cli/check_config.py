"""``pinchpoint check-config``: every mistake of a configuration at once, and where each value came from."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail

if TYPE_CHECKING:
    from pinchpoint.config import Loaded


def check_config(
    file: Annotated[
        Path | None, typer.Argument(help="The configuration file (YAML). Without: what the environment says.")
    ] = None,
    secrets: Annotated[Path | None, typer.Option("--secrets.dir", help="Folder with one secret per file.")] = None,
    settings_file: Annotated[
        Path | None,
        typer.Option(
            "--settings.file", help="A settings.json with VLLM_... and TAOTOKEN_... names to read beneath it."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print each value that is not a default, and where it came from.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON, with what --explain tells.")
    ] = False,
) -> None:
    """Check a configuration; print every mistake with file, key and remedy.

    Exit code 0: it is fine; 1: it holds mistakes; 2: wrong usage, no such file. What is no mistake but surprises, such
    as two places that differ, is a note beside "fine". Secrets are never printed.

    \b
    Examples:
      pinchpoint check-config /etc/pinchpoint/pinchpoint.yaml
      pinchpoint check-config --settings.file settings.json --explain
    """
    from pinchpoint.config import ConfigError, read

    for each, what in ((file, "configuration"), (settings_file, "settings.json")):
        if each is not None and not each.exists():
            fail(f"{each}: no such file; name the {what} to check")
    try:
        loaded = read(file, secrets=secrets, flags={"settings_file": settings_file} if settings_file else {})
    except ConfigError as error:
        if as_json:
            print(json.dumps({"fine": False, "mistakes": [asdict(problem) for problem in error.problems]}, indent=2))
            raise typer.Exit(BAD_NEWS) from None
        fail(str(error), BAD_NEWS)
    _answer(str(file or settings_file or "environment"), loaded, explain=explain, as_json=as_json)


def _answer(name: str, loaded: "Loaded", *, explain: bool, as_json: bool) -> None:
    from pinchpoint.config import provenance

    told = list(provenance(loaded.settings, loaded.origins))
    if as_json:
        notes = [asdict(notice) for notice in loaded.notices]
        print(json.dumps({"fine": True, "notes": notes, "settings": [asdict(each) for each in told]}, indent=2))
        return
    print(f"{name}: fine")
    for notice in loaded.notices:
        print(f"note: {notice}")
    if explain:
        for each in told:
            print(f"{each.key} = {each.value}  ({each.where})")
        print("everything else is at its default")
