"""More GPUs help where another replica, or more ranks, bring what is short; what costs no GPU comes first."""

import pytest

from pinchpoint.capacity import Scaling, judge_scaling
from pinchpoint.diagnosis import Advice, Bottleneck, Diagnosis

HELP = {Bottleneck.KV_CAPACITY, Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH}
DO_NOT = {Bottleneck.IDLE, Bottleneck.HEALTHY, Bottleneck.SLEEPING, Bottleneck.NETWORK, Bottleneck.IMBALANCE}


def scaling(bottleneck: Bottleneck, *levers: str, **signals: float) -> Scaling:
    return judge_scaling(
        Diagnosis(
            engine="chat",
            at=0.0,
            bottleneck=bottleneck,
            why="",
            confidence_ratio=1.0,
            signals=signals,
            advice=tuple(Advice(action=lever, text="") for lever in levers),
        )
    )


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
def test_each_class_says_whether_more_gpus_help(bottleneck: Bottleneck) -> None:
    told = scaling(bottleneck)

    assert told.more_gpus_help is (True if bottleneck in HELP else False if bottleneck in DO_NOT else None)
    assert told.reason


def test_a_host_that_is_used_up_is_no_better_off_with_a_replica_more() -> None:
    assert scaling(Bottleneck.HOST_CPU, host_cpu_throttled_ratio=0.3).more_gpus_help is False
    assert scaling(Bottleneck.HOST_CPU, host_cpu_pressure_ratio=0.4).more_gpus_help is False
    assert (
        scaling(Bottleneck.HOST_CPU, host_cpu_throttled_ratio=0.0, host_cpu_pressure_ratio=0.0).more_gpus_help is None
    )


def test_an_uneven_load_that_may_not_fit_is_levelled_first() -> None:
    assert scaling(Bottleneck.IMBALANCE, replicas_queued=1.0, replicas_with_room=3.0).more_gpus_help is False
    assert scaling(Bottleneck.IMBALANCE, replicas_queued=3.0, replicas_with_room=1.0).more_gpus_help is None


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
