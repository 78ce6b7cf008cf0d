"""Every class has its cases, and every threshold is held where it is: a case notices when it is raised, one when it is
lowered. ``python -m tests.diagnosis.boundaries`` writes the table anew."""

from collections import Counter

import pytest
import yaml

from pinchpoint.diagnosis import Bottleneck, Thresholds
from tests.diagnosis.boundaries import CASES, ELSEWHERE, TABLE, said
from tests.diagnosis.case import load

ROWS = yaml.safe_load(TABLE.read_text())
# The median of an engine's histogram lies up to a quarter below what its requests wait, so a share of a fifth is seen
# above it and never just below.
ONE_SIDED = {("way_share", "lowered")}
HELD = [(name, side, at["case"], at["to"]) for name, row in ROWS.items() for side, at in row.items()]


def test_every_class_has_three_cases() -> None:
    counted = Counter(load(path).expect for path in CASES.glob("*.yaml"))
    assert {name: counted[name] for name in Bottleneck if counted[name] < 3} == {}


def test_every_threshold_is_in_the_table_from_both_sides() -> None:
    wanted = set(Thresholds.model_fields) - set(ELSEWHERE)
    sides = {(name, side) for name in wanted for side in ("raised", "lowered")} - ONE_SIDED
    assert {(name, side) for name, side, _, _ in HELD} == sides, "write the table anew, and cases for what is missing"


@pytest.mark.parametrize(("threshold", "side", "name", "value"), HELD, ids=str)
def test_a_threshold_that_is_moved_is_noticed(threshold: str, side: str, name: str, value: float) -> None:
    usual = Thresholds()
    moved = usual.model_copy(update={threshold: value})
    assert (value > getattr(usual, threshold)) is (side == "raised")

    case = load(CASES / f"{name}.yaml")

    assert said(case, moved) != said(case, usual)
