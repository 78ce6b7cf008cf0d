"""``pinchpoint rules``: writes the rules, or with a command after it does something else with them."""

from typing import Any

import typer
from typer.core import TyperGroup

from pinchpoint.cli.backtest import backtest
from pinchpoint.cli.rules import rules

WRITE = "write"


class _WritesByDefault(TyperGroup):
    """``pinchpoint rules FOLDER`` is ``pinchpoint rules write FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        asks = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if asks else [WRITE, *args])


rules_group = typer.Typer(
    cls=_WritesByDefault,
    help="Write the Prometheus rules (the default), or try them on the past.\n\n"
    "Example: pinchpoint rules backtest --prometheus http://127.0.0.1:9090",
    rich_markup_mode=None,
)
rules_group.command(WRITE)(rules)
rules_group.command()(backtest)
