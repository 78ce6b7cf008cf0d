"""The commands, one file each: parsing, printing and exit codes, and no work of their own.

Exit codes: 0 fine · 1 the answer is bad news · 2 wrong usage or input (one clear line, no traceback). The answer alone
goes to stdout; progress and logs go to stderr.
"""

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from pinchpoint import __version__, logs
from pinchpoint.cli.check_config import check_config
from pinchpoint.cli.dashboards import dashboards
from pinchpoint.cli.demo import demo
from pinchpoint.cli.diagnose import diagnose
from pinchpoint.cli.exits import WRONG_INPUT, printable
from pinchpoint.cli.gpu import gpu
from pinchpoint.cli.probe import probe
from pinchpoint.cli.rules_group import rules_group
from pinchpoint.cli.run import run

app = typer.Typer(
    name="pinchpoint",
    help="Find the pinch point of GPU inference: why it is slow, and whether more GPUs would help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run)
app.command()(demo)
app.command()(diagnose)
app.command()(probe)
app.command("check-config")(check_config)
app.add_typer(rules_group, name="rules")
app.command()(dashboards)
app.add_typer(gpu, name="gpu")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"pinchpoint {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version
    logs.configure("error")  # a command says itself what went wrong; `run` and `demo` configure their own log


def _open_streams() -> None:
    """A standard stream that is closed becomes /dev/null, lest the next socket gets its number, and a log line.

    A letter that its encoding lacks becomes a question mark, and a width of no columns is none.
    """
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)


def main() -> None:
    """The console script."""
    _open_streams()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:  # of what no command foresees: standard output on a full disk
        where = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"pinchpoint: {printable(f'{where}{error.strerror or error}')}\n")
        os._exit(WRONG_INPUT)  # the interpreter's own end would flush once more
