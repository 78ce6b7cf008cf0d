"""The figures of the diagnosis for people, and as JSON for machines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.diagnosis_figures import Share, confusion, first_right, recall, shares
from bench.diagnosis_rows import FULL, Row
from bench.report import machine
from bench.vllm_doctor import CLASSES, NOTHING_FOUND


def as_json(rows: Sequence[Row], setting: Mapping[str, object]) -> dict[str, Any]:
    judges = _judges(rows)
    return {
        "machine": machine(),
        **setting,
        "n": len(rows),
        "judges": {
            judge: {
                share.what: {**asdict(share), "ratio": share.ratio, "interval": share.interval, "met": share.met}
                for share in shares(rows, judge)
            }
            for judge in judges
        },
        "recall": {label: asdict(share) for label, share in recall(rows, FULL).items()},
        "confusion": [
            {"true": true, "said": said, "count": count}
            for (true, said), count in sorted(confusion(rows, FULL).items())
        ],
        "rows": [asdict(row) for row in rows],
    }


def print_tables(rows: Sequence[Row], setting: Mapping[str, object], *, wrong: bool) -> None:
    """To stdout; without colours where that is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else 170, highlight=False)
    where = machine()
    console.print(f"{where['cpu']}, {where['cores']} cores, Linux {where['kernel']}, {where['python']}")
    console.print(", ".join(f"{key} {value}" for key, value in setting.items()), f"n = {len(rows)}\n", sep=", ")
    console.print(_confusion(rows), "")
    console.print(_recall(rows), "")
    for judge in _judges(rows):
        console.print(_shares(judge, shares(rows, judge)), "")
    if any(judge.startswith("vllm-doctor") for judge in _judges(rows)):
        console.print("vllm-doctor's rules as classes, any of which counts:")
        for rule, classes in CLASSES.items():
            console.print(f"  {rule}: {' or '.join(classes) or 'none of ours'}")
        console.print(f"  nothing found: {' or '.join(NOTHING_FOUND)}\n")
    console.print("Share of n (95 % interval). Strict: the one label counts, a cause within 5 % of its gain does not.")
    if wrong:
        console.print("", _wrong(rows))


def _judges(rows: Sequence[Row]) -> list[str]:
    return list(rows[0].answers) if rows else []


def _table(*titles: str, first: str = "") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for title in titles:
        table.add_column(title, justify="right")
    return table


def _shares(judge: str, figures: Sequence[Share]) -> Table:
    table = _table(
        "share", "95 %", "strict", "aim", first=judge if judge.startswith("vllm") else f"pinchpoint, {judge}"
    )
    for share in figures:
        low, high = share.interval
        strict = "" if share.strict is None else _percent(share.strict / share.of)
        table.add_row(share.what, _percent(share.ratio), f"{_percent(low)} to {_percent(high)}", strict, _aim(share))
    return table


def _aim(share: Share) -> str:
    if share.met is None:
        return ""
    aim = f"≥ {_percent(share.at_least)}" if share.at_least is not None else f"≤ {_percent(share.at_most or 0.0)}"
    return f"[green]{aim}: met[/]" if share.met else f"[red]{aim}: missed[/]"


def _recall(rows: Sequence[Row]) -> Table:
    table = _table("n", "found", "strict", first="class")
    for label, share in recall(rows, FULL).items():
        table.add_row(label, str(share.of), _percent(share.ratio), _percent((share.strict or 0) / share.of))
    return table


def _confusion(rows: Sequence[Row]) -> Table:
    """Rows are true, columns are said."""
    pairs = confusion(rows, FULL)
    true, said = sorted({pair[0] for pair in pairs}), sorted({pair[1] for pair in pairs})
    table = _table(*(name.replace("_", "\n") for name in said), first="true ↓  said →")
    for label in true:
        table.add_row(label, *(str(pairs.get((label, name), "") or "·") for name in said))
    return table


def _wrong(rows: Sequence[Row]) -> Table:
    table = _table("said", "confidence", "true", "gains", "in SLO", "excess", first="seed (story)")
    for row in rows:
        answer, truth = row.answers[FULL], row.truth
        if first_right(answer, frozenset(truth.ties)):
            continue
        gains = ", ".join(f"{name} {gain:.2f}" for name, gain in list(truth.gains.items())[:4])
        table.add_row(
            f"{row.name} ({row.story})",
            " > ".join((*answer.named, *answer.others)),
            "" if answer.confidence is None else f"{answer.confidence:.2f}",
            " = ".join(truth.ties) + (" (compound)" if truth.compound else ""),
            gains,
            _percent(truth.in_slo_share),
            f"{truth.excess:.2f}",
        )
    return table


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f} %"
