"""What GPUs need, though nobody suffers yet."""

from dataclasses import replace

import pytest

from pinchpoint.diagnosis.upkeep import RECOVERY, findings
from pinchpoint.snapshot import GpuReading, GpuState
from pinchpoint.sources.gpu.rows import ROWS

WELL = GpuReading(
    gpu="0", uuid="GPU-0", at=0.0, recovery_action="none", remapped_rows={"correctable": 2.0, "pending": 0.0}
)


def test_a_well_gpu_needs_nothing() -> None:
    assert findings([WELL, replace(WELL, gpu="1", recovery_action=None)]) == ()


@pytest.mark.parametrize("action", [ROWS["recovery_action"].take(code) for code in range(1, 8)])
def test_every_request_of_the_driver_has_its_remedy(action: str) -> None:
    (finding,) = findings([WELL, replace(WELL, gpu="3", recovery_action=action)])
    assert (finding.check, finding.gpus) == ("recovery_action", ("3",))
    assert finding.text.startswith("the driver asks for ")
    assert finding.text.endswith(f"({action}) on GPU 3")
    assert finding.remedy == RECOVERY[action][1]


def test_a_request_that_is_newer_than_us_is_told_as_it_is() -> None:
    (finding,) = findings([replace(WELL, recovery_action="code_9")])
    assert "(code_9)" in finding.text


def test_a_gpu_that_does_not_answer_any_more_still_has_its_request() -> None:
    gone = replace(WELL, up=False, state=GpuState.RESET_REQUIRED, recovery_action="gpu_reset")
    assert [finding.check for finding in findings([gone])] == ["recovery_action"]


@pytest.mark.parametrize(
    ("field", "key", "check"),
    [
        ("remapped_rows", "failure", "remapped_rows_failure"),
        ("remapped_rows", "pending", "remapped_rows_pending"),
        ("retired_pages", "pending", "retired_pages_pending"),
    ],
)
def test_memory_that_waits_for_a_reset_or_for_its_end_is_named(field: str, key: str, check: str) -> None:
    odd = [replace(WELL, gpu=gpu, **{field: {key: 1.0}}) for gpu in ("2", "10")]  # type: ignore[arg-type]
    (finding,) = findings([WELL, *odd])
    assert (finding.check, finding.gpus) == (check, ("2", "10"))
    assert finding.text.endswith(" on GPUs 2 and 10")
