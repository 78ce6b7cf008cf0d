"""More GPUs help where another replica, or more ranks, bring what is short; what costs no GPU comes first."""

import pytest

from pinchpoint.capacity import Scaling, judge_scaling
from pinchpoint.diagnosis import Advice, Bottleneck, Diagnosis
from pinchpoint.diagnosis.verdict import Objective

HELP = {Bottleneck.KV_CAPACITY, Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH}
DO_NOT = {Bottleneck.IDLE, Bottleneck.HEALTHY, Bottleneck.SLEEPING}


def scaling(bottleneck: Bottleneck, *levers: str, **signals: float) -> Scaling:
    return judge_scaling(
        Diagnosis(
            engine="chat",
            at=0.0,
            bottleneck=bottleneck,
            why="",
            confidence_ratio=1.0,
            signals=signals,
            ttft=Objective(slo_seconds=2.0),
            advice=tuple(Advice(action=lever, text="") for lever in levers),
        )
    )


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
def test_each_class_says_whether_more_gpus_help(bottleneck: Bottleneck) -> None:
    told = scaling(bottleneck)

    assert told.more_gpus_help is (True if bottleneck in HELP else False if bottleneck in DO_NOT else None)
    assert told.reason


def test_a_quota_that_is_used_up_bears_no_replica_more() -> None:
    assert scaling(Bottleneck.HOST_CPU, host_cpu_throttled_ratio=0.3).more_gpus_help is False
    assert scaling(Bottleneck.HOST_CPU, host_cpu_throttled_ratio=0.0).more_gpus_help is None


def test_no_engine_is_quick_enough_where_the_way_alone_takes_longer_than_was_promised() -> None:
    assert scaling(Bottleneck.NETWORK, network_ttft_seconds=2.5).more_gpus_help is False
    assert scaling(Bottleneck.NETWORK, network_ttft_seconds=0.5).more_gpus_help is None


def test_the_shape_is_a_replica_where_requests_queue_and_more_ranks_where_one_prompt_is_too_slow() -> None:
    assert "another replica adds" in scaling(Bottleneck.COMPUTE, "add_replica", queue_share=0.8).reason
    alone = scaling(Bottleneck.COMPUTE, "add_replica", "raise_tensor_parallel_size", queue_share=0.0)
    assert "twice the ranks" in alone.reason


def test_the_shape_is_more_ranks_where_the_weights_are_what_is_dear() -> None:
    assert "replica brings" in scaling(Bottleneck.KV_CAPACITY, "add_replica").reason
    assert "twice the ranks" in scaling(Bottleneck.KV_CAPACITY, "add_replica", "raise_tensor_parallel_size").reason
    assert "not another replica" in scaling(Bottleneck.MEMORY_BANDWIDTH, "raise_tensor_parallel_size").reason
    assert "shares the batch" in (
        scaling(Bottleneck.MEMORY_BANDWIDTH, "add_replica", "raise_tensor_parallel_size").reason
    )
