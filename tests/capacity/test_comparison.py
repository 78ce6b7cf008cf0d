"""After a change: whether it worked by what requests felt, and what that teaches."""

from dataclasses import replace

import pytest

from pinchpoint.capacity import MeasuredRun, compare
from pinchpoint.diagnosis import Advice, Bottleneck
from pinchpoint.snapshot import EngineFacts

QUEUED = MeasuredRun(
    bottleneck=Bottleneck.COMPUTE,
    next_lever=Advice(action="add_replica", text="Then another replica."),
    seconds=60.0,
    arrivals_per_second=4.0,
    in_flight=40.0,
    prompt_tokens=2000.0,
    output_tokens=200.0,
    ttft_p50_seconds=6.0,
    ttft_p95_seconds=9.0,
    tpot_seconds=0.03,
    output_tokens_per_second=500.0,
    in_slo_share=0.2,
    facts=EngineFacts(kind="vllm", model="m", tensor_parallel_size=1, max_num_seqs=64),
)
WELL = replace(
    QUEUED,
    bottleneck=Bottleneck.HEALTHY,
    next_lever=None,
    in_flight=20.0,
    ttft_p50_seconds=0.3,
    ttft_p95_seconds=0.9,
    in_slo_share=1.0,
)


def facts(run: MeasuredRun, **changed: object) -> MeasuredRun:
    return replace(run, facts=replace(run.facts, **changed))  # type: ignore[arg-type]


def test_a_lever_that_brings_requests_into_their_objectives_worked() -> None:
    found = compare(QUEUED, facts(WELL, max_num_seqs=128))
    assert found.worked is True
    assert [(change.name, change.before, change.after) for change in found.changes] == [("max_num_seqs", 64, 128)]
    assert found.lessons == ("it is no longer compute: nothing pinches now",)


def test_the_same_again_did_not_work_and_says_what_is_next() -> None:
    found = compare(QUEUED, QUEUED)
    assert found.worked is False
    assert found.lessons[0] == "it is still compute; next: Then another replica."
    assert "not recorded" in found.lessons[1]


def test_tokens_that_are_slower_on_more_ranks_say_stop_even_where_more_requests_are_in_time() -> None:
    split = facts(replace(QUEUED, tpot_seconds=0.034, in_slo_share=0.4), tensor_parallel_size=2)
    found = compare(QUEUED, split)
    assert found.worked is False
    assert "13 % longer on 2 GPUs than on 1: stop" in found.lessons[0]


@pytest.mark.parametrize(("tpot", "verdict"), [(0.018, "as expected"), (0.025, "less than expected")])
def test_twice_the_ranks_are_held_against_what_they_bring_in_practice(tpot: float, verdict: str) -> None:
    slow = replace(QUEUED, tpot_seconds=0.03, bottleneck=Bottleneck.MEMORY_BANDWIDTH)
    found = compare(slow, facts(replace(slow, tpot_seconds=tpot), tensor_parallel_size=2))
    assert any("1.5 to 1.8 are usual" in lesson and lesson.endswith(verdict) for lesson in found.lessons), found.lessons


def test_first_tokens_that_come_no_sooner_with_more_gpus_point_at_the_scheduler_or_the_network() -> None:
    found = compare(QUEUED, replace(QUEUED, replicas=2, ttft_p50_seconds=5.8))
    assert found.worked is False
    assert "the scheduler" in found.lessons[0]
    assert any("1.8 to 2.0 are usual: less than expected" in lesson for lesson in found.lessons)


def test_replicas_that_a_load_does_not_fill_are_not_held_against_twice_the_throughput() -> None:
    found = compare(QUEUED, replace(WELL, replicas=2))
    assert found.worked is True
    assert any("takes a load test" in lesson for lesson in found.lessons)
    assert not any("usual" in lesson for lesson in found.lessons)


def test_as_good_on_fewer_gpus_is_a_success_and_as_good_on_as_many_is_none() -> None:
    assert compare(replace(WELL, replicas=2), WELL).worked is True
    assert compare(WELL, WELL).worked is False


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (replace(QUEUED, prompt_tokens=3000.0), "prompts"),
        (replace(QUEUED, output_tokens=100.0), "answers"),
        (replace(QUEUED, arrivals_per_second=2.0, in_flight=10.0), "arrive"),
        (facts(QUEUED, model="another"), "models"),
    ],
)
def test_another_load_is_no_comparison(other: MeasuredRun, why: str) -> None:
    found = compare(QUEUED, other)
    assert found.worked is None
    assert why in found.incomparable[0]
    assert not found.lessons


def test_clients_that_wait_for_their_answers_ask_more_often_of_a_faster_engine() -> None:
    assert compare(QUEUED, replace(WELL, arrivals_per_second=8.0, in_flight=20.0)).worked is True


def test_several_changes_at_once_tell_not_which_of_them_it_was() -> None:
    found = compare(QUEUED, facts(WELL, max_num_seqs=128, kv_cache_dtype="fp8"))
    assert [change.name for change in found.changes] == ["max_num_seqs"], "what one run alone tells is no change"
    two = compare(QUEUED, facts(replace(WELL, replicas=2), max_num_seqs=128))
    assert "several things changed at once" in two.lessons[-1]
