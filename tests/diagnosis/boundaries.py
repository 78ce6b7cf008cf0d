"""Which cases hold each threshold where it is: ``python -m tests.diagnosis.boundaries`` writes the table anew.

One notices when it is raised, one when it is lowered: what is said of them changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from pinchpoint.diagnosis import Thresholds, diagnose
from tests.diagnosis.case import Case, load

CASES = Path(__file__).parent / "cases"
TABLE = Path(__file__).parent / "boundaries.yaml"
RAISED, LOWERED = (1.1, 1.5, 3, 10, 100), (0.9, 0.6, 0.3, 0.1, 0.01)
# Of time and not of one window: what is shown and held, which other tests move.
ELSEWHERE = (
    "hold_seconds",
    "fast_hold_seconds",
    "recovery_hold_seconds",
    "held_margin",
    "resume_seconds",
    "stale_seconds",
)

Row = Mapping[str, Mapping[str, Any]]  # raised and lowered: the case, and the value moved to


def said(case: Case, thresholds: Thresholds) -> object:
    """All that a threshold may change, but for its own number in a text."""
    verdict = diagnose(case.window, "chat", case.snapshots[-1].at, thresholds)
    facts = [fact.signal for fact in (*verdict.evidence, *verdict.contradicted_by)]
    return verdict.bottleneck, dict(verdict.scores), verdict.confidence_ratio, facts, verdict.missing


def moved(name: str, factors: tuple[float, ...]) -> Iterator[float]:
    """The values of a threshold to try, the nearest first, within what it may be."""
    field, default = Thresholds.model_fields[name], getattr(Thresholds(), name)
    for factor in factors:
        value = _within(field, default * factor)
        value = round(value) if isinstance(default, int) else float(f"{value:.6g}")
        if value != default:
            yield value


def _within(field: FieldInfo, value: float) -> float:
    for limit in field.metadata:
        value = min(value, getattr(limit, "le", value), getattr(limit, "lt", value + 1) - 1e-3)
        value = max(value, getattr(limit, "ge", value), getattr(limit, "gt", value - 1) + 1e-3)
    return value


def row_of(name: str, cases: Sequence[tuple[Case, object]]) -> Row:
    """The cases that notice first; without a side where none does."""
    found = {}
    for side, factors in (("raised", RAISED), ("lowered", LOWERED)):
        for value in moved(name, factors):
            other = Thresholds().model_copy(update={name: value})
            case = next((case for case, before in cases if said(case, other) != before), None)
            if case is not None:
                found[side] = {"to": value, "case": case.name}
                break
    return found


def main() -> None:
    cases = [(case, said(case, Thresholds())) for case in map(load, sorted(CASES.glob("*.yaml")))]
    table = {name: row_of(name, cases) for name in Thresholds.model_fields if name not in ELSEWHERE}
    TABLE.write_text(yaml.safe_dump(table, sort_keys=False, width=120))
    for name, row in table.items():
        for side in ("raised", "lowered"):
            if side not in row:
                print(f"{name}: nobody notices when it is {side}")


if __name__ == "__main__":
    main()
