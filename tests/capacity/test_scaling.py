"""More GPUs help where another replica brings what is short, and nowhere else."""

import pytest

from pinchpoint.capacity import judge_scaling
from pinchpoint.diagnosis import Bottleneck, Diagnosis

HELP = {Bottleneck.KV_CAPACITY, Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH}
DO_NOT_TELL = {Bottleneck.UNKNOWN, Bottleneck.NO_DATA, Bottleneck.INTERCONNECT, Bottleneck.MEMORY_GROWTH}


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
def test_each_class_says_whether_more_gpus_help(bottleneck: Bottleneck) -> None:
    diagnosis = Diagnosis(engine="chat", at=0.0, bottleneck=bottleneck, why="", confidence_ratio=1.0)

    scaling = judge_scaling(diagnosis)

    assert scaling.more_gpus_help is (None if bottleneck in DO_NOT_TELL else bottleneck in HELP)
    assert scaling.reason
