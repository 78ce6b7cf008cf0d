"""The figures as a table for people, and as JSON for machines."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.faults import Fact
from bench.figures import Figure, Spread
from bench.subjects import Subject


def machine() -> dict[str, str]:
    """Where it was measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return {
        "cpu": model,
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def as_json(figures: Sequence[Figure], subjects: Sequence[Subject], setting: str) -> dict[str, Any]:
    return {
        "machine": machine(),
        "setting": setting,
        "exporters": {subject.name: subject.version for subject in subjects},
        "figures": [
            {
                "what": figure.what,
                "unit": figure.unit,
                "n": figure.n,
                "aim": figure.aim,
                "met": figure.meets_aim(subjects[0].name),
                "exporters": {subject.name: asdict(figure.of(subject.name)) for subject in subjects},
                "ratio": asdict(ratio) if (ratio := _ratio(figure, subjects)) else None,
            }
            for figure in figures
        ],
    }


def print_table(figures: Sequence[Figure], subjects: Sequence[Subject], setting: str) -> None:
    """To stdout; as wide as it needs to be and without colours where that is no terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("n", justify="right")
    for subject in subjects:
        table.add_column(f"{subject.name} {subject.version}", justify="right")
    for title in ("ratio",) * (len(subjects) > 1) + ("aim",):
        table.add_column(title, justify="right")
    for figure in figures:
        cells = [_text(figure.of(subject.name)) for subject in subjects]
        if len(subjects) > 1:
            cells.append(_text(_ratio(figure, subjects)))
        title = f"{figure.what}, {figure.unit}" if figure.unit else figure.what
        table.add_row(title, str(figure.n), *cells, _aim(figure, subjects[0].name))
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    where = machine()
    console.print(f"{where['cpu']}, {where['cores']} cores, Linux {where['kernel']}, {where['python']}")
    console.print(f"{setting}\n", table, "\nValue of all n samples (lowest to highest repetition).", sep="\n")


def print_facts(facts: Sequence[Fact], subjects: Sequence[Subject]) -> None:
    """What was seen rather than measured."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", *(subject.name for subject in subjects)):
        table.add_column(title)
    for fact in facts:
        table.add_row(fact.what, *(fact.shown[subject.name] for subject in subjects))
    Console(width=None if sys.stdout.isatty() else 160, highlight=False).print("", table, sep="\n")


def _ratio(figure: Figure, subjects: Sequence[Subject]) -> Spread | None:
    return figure.ratio(subjects[0].name, subjects[1].name) if len(subjects) > 1 else None


def _text(spread: Spread | None) -> str:
    if spread is None:
        return ""
    if spread.low == spread.high:
        return _number(spread.value)
    return f"{_number(spread.value)} ({_number(spread.low)} to {_number(spread.high)})"


def _number(value: float) -> str:
    """Three digits, as many as there is sense in."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _aim(figure: Figure, exporter: str) -> str:
    met = figure.meets_aim(exporter)
    if met is None:
        return ""
    return f"[green]≤ {figure.aim:g}: met[/]" if met else f"[red]≤ {figure.aim:g}: missed[/]"
