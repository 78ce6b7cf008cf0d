"""The journey as a table for people."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

import pinchpoint
from tests.real_vllm.checks import mean
from tests.real_vllm.install import VERSION
from tests.real_vllm.journey import Row

_TITLES = ("state", "seconds", "running", "waiting", "KV", "tokens/s", "class", "confidence", "checks", "verdict")
_WIDTH = 140  # where no terminal says its own


def print_table(rows: Sequence[Row], seconds: float) -> None:
    """To stdout: what was seen in each state, why pinchpoint called it so, and every check that failed."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in _TITLES:
        table.add_column(title, justify="left" if title in ("state", "class", "verdict") else "right")
    for row in rows:
        verdict = "[green]good[/]" if row.good else "[red]wrong[/]"
        good = sum(check.good for check in row.checks)
        table.add_row(row.name, f"{row.seconds:.0f}", *_seen(row), f"{good}/{len(row.checks)}", verdict)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print(
        f"pinchpoint {pinchpoint.__version__}, vLLM {VERSION} (CPU), Python {platform.python_version()}, "
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, {datetime.now(UTC):%Y-%m-%d}, {seconds:.0f} s\n"
    )
    console.print(table)
    console.print("\nSteady part of each state: means; class and confidence at its end. In pinchpoint's words:")
    for row in rows:
        if row.looks and row.looks[-1].why:
            console.print(f"  {row.name}: {row.looks[-1].why}", soft_wrap=True)
    for row in rows:
        for check in row.checks:
            if not check.good:
                console.print(
                    f"[red]wrong[/] in {row.name}: {check.what}: {check.seen}, wanted {check.wanted}", soft_wrap=True
                )


def _seen(row: Row) -> Sequence[str]:
    if not row.looks:
        return ("",) * 6
    kv = mean(look.kv for look in row.looks)
    return (
        _number(mean(look.running for look in row.looks)),
        _number(mean(look.waiting for look in row.looks)),
        "" if kv is None else f"{100 * kv:.0f} %",
        _number(mean(look.tokens_per_second for look in row.looks)),
        row.looks[-1].bottleneck,
        f"{row.looks[-1].confidence:.2f}",
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
