"""Every labelled case gets its class."""

from pathlib import Path

import pytest

from pinchpoint.diagnosis import Thresholds, diagnose
from tests.diagnosis.case import Case, load

CASES = [load(path) for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_labelled_window_gets_its_class_with_its_evidence(case: Case) -> None:
    verdict = diagnose(case.window, "chat", case.snapshots[-1].at, Thresholds())

    assert verdict.bottleneck is case.expect, f"{case.about}\n{verdict}"
    assert case.why in verdict.why
    assert set(case.evidence) <= {evidence.signal for evidence in verdict.evidence}
    assert not set(case.silent) & {evidence.signal for evidence in verdict.evidence}
    for words in case.says:
        assert any(words in evidence.text for evidence in verdict.evidence), verdict.evidence
    assert set(case.missing) <= set(verdict.missing)
    low, high = case.score
    assert low <= verdict.scores.get(case.expect, 0.0) <= high
    assert {never: score for never in case.never if (score := verdict.scores.get(never, 0.0)) >= 0.5} == {}
    assert all(evidence.text for evidence in verdict.evidence)
