"""``pinchpoint check-config``: every mistake of a configuration at once."""

from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail


def check_config(
    file: Annotated[Path, typer.Argument(help="The configuration file (YAML).")],
    secrets: Annotated[Path | None, typer.Option("--secrets.dir", help="Folder with one secret per file.")] = None,
) -> None:
    """Check a configuration file; print every mistake with file, key and remedy.

    Exit code 0: it is fine; 1: it holds mistakes; 2: wrong usage, no such file.

    Example: pinchpoint check-config /etc/pinchpoint/pinchpoint.yaml
    """
    from pinchpoint.config import ConfigError, load

    if not file.exists():
        fail(f"{file}: no such file; name the configuration to check")
    try:
        load(file, secrets=secrets)
    except ConfigError as error:
        fail(str(error), BAD_NEWS)
    print(f"{file}: fine")
