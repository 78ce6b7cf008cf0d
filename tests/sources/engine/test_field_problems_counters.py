"""Symptoms from the field, of counters and histograms: aborts, recomputed tokens, negative times, swapped phases."""

import pytest

from pinchpoint.diagnosis import Bottleneck
from pinchpoint.snapshot import EngineFacts, EngineReading
from tests.sources.engine.sequences import diagnosed, gauge, histogram, readings, state


def last(bodies: list[str], **given) -> EngineReading:
    return readings(bodies, **given)[-1]


def cached(n: int, hits: float, queries: float, preempted: float) -> str:
    return (
        state(8, 0, 0.4, tokens=100 * n, prompt=1000 * n)
        + gauge("prefix_cache_queries_total", queries * n)
        + gauge("prefix_cache_hits_total", hits * n)
        + gauge("num_preemptions_total", preempted * n)
    )


# https://github.com/vllm-project/vllm/issues/25780
def test_hits_that_are_recomputed_preemptions_are_not_believed_while_requests_are_preempted():
    calm, thrashing = ([cached(n, hits=300, queries=1000, preempted=rate) for n in range(20)] for rate in (0, 1))
    old = EngineFacts(version="0.10.2")
    assert diagnosed(calm, facts=old).signals["prompt_tokens_per_second"] == pytest.approx(700)
    assert diagnosed(thrashing, facts=old).signals["prompt_tokens_per_second"] == pytest.approx(1000)
    assert "preempted and computed again" in last(thrashing, facts=old).warnings[0]
    assert last(calm, facts=old).warnings == ()
    assert last(thrashing, facts=EngineFacts(version="0.12.0")).warnings == ()


def test_the_share_of_hits_counts_for_old_engines_count_blocks():
    blocks = [cached(n, hits=30, queries=62.5, preempted=0) for n in range(20)]  # of 16 tokens
    assert diagnosed(blocks).signals["prompt_tokens_per_second"] == pytest.approx(1000 * (1 - 30 / 62.5))


# https://github.com/vllm-project/vllm-ascend/issues/16639
def test_no_hits_are_no_proof_that_nothing_is_cached():
    def step(n: int) -> str:
        config = 'vllm:cache_config_info{enable_prefix_caching="True",block_size="16",num_gpu_blocks="100"} 1\n'
        sources = gauge("prompt_tokens_by_source_total", 100 * n, source="local_compute")
        return cached(n, hits=0, queries=1000, preempted=0) + sources + config

    bodies = [step(n) for n in range(20)]
    assert diagnosed(bodies).signals["prompt_tokens_per_second"] == pytest.approx(100)
    assert last(bodies).facts.enable_prefix_caching is True


def prefill_storm(block_size: int) -> list[str]:
    config = f'vllm:cache_config_info{{block_size="{block_size}",mamba_block_size="{block_size}"}} 1\n'

    def step(n: int) -> str:
        steps = "".join(
            gauge(f"iteration_tokens_total_{part}", value, **labels)
            for part, value, labels in (
                ("bucket", 4 * n, {"le": "+Inf"}), ("sum", 8000 * n, {}), ("count", 4 * n, {}),
            )
        )  # fmt: skip
        return (
            state(30, 20, 0.4, tokens=20 * n, prompt=8000 * n)
            + steps
            + histogram("time_to_first_token_seconds", [9.0] * n)
            + config
        )

    return [step(n) for n in range(30)]


# https://github.com/vllm-project/vllm/issues/54607
def test_the_advice_on_prefixes_says_how_long_one_must_be_where_blocks_are_large():
    verdict = diagnosed(prefill_storm(784))
    assert verdict.bottleneck is Bottleneck.COMPUTE
    assert verdict.advice[0].action == "share_prefixes"
    assert "at least 784 tokens" in verdict.advice[0].text
    assert "at least" not in diagnosed(prefill_storm(16)).advice[0].text


# https://github.com/vllm-project/vllm/issues/31503 , https://github.com/vllm-project/vllm/issues/55634
def test_aborted_work_moves_token_counters_and_no_histogram_and_that_is_load():
    """Clients give up: prompts are computed, nothing finishes, and abort stays 0 (seen on a live 0.32 server too)."""

    def step(n: int) -> str:
        finished = "".join(
            gauge("request_success_total", value, finished_reason=reason)
            for reason, value in (("stop", 3), ("abort", 0))
        )
        return (
            state(5, 0, 0.3, tokens=50 * n, prompt=4000 * n)
            + finished
            + histogram("time_to_first_token_seconds", [0.3] * n)
            + histogram("e2e_request_latency_seconds", [2.0] * 3)
            + histogram("request_queue_time_seconds", [0.0] * 3)
        )

    bodies = [step(n) for n in range(30)]
    verdict = diagnosed(bodies)
    assert verdict.bottleneck is Bottleneck.HEALTHY
    assert verdict.signals["prompt_tokens_per_second"] == pytest.approx(4000)
    assert "queue_mean_seconds" not in verdict.signals
    assert last(bodies).replicas[0].request_success_total == {"stop": 3, "abort": 0}


# https://github.com/vllm-project/vllm/issues/34691
def test_a_gap_in_the_statistics_of_a_pause_is_a_gap_and_no_restart():
    def step(n: int) -> str:
        return state(2, 0, 0.1, tokens=100 * n) + histogram("time_to_first_token_seconds", [0.1] * n)

    silent = gauge("num_requests_running", 2) + gauge("num_requests_waiting", 0)
    bodies = [silent if 10 <= n < 14 else step(n) for n in range(30)]
    assert {reading.epoch for reading in readings(bodies)} == {"#0"}
    verdict = diagnosed(bodies)
    assert verdict.bottleneck is Bottleneck.HEALTHY
    assert verdict.signals["generation_tokens_per_second"] == pytest.approx(100)


# https://github.com/vllm-project/vllm/pull/56238
def test_a_negative_queue_time_is_no_restart_and_its_mean_no_less_than_0():
    def step(n: int) -> str:
        queue = histogram("request_queue_time_seconds", [0.0] * n, total=-0.05 * n)
        return state(2, 0, 0.1, tokens=100 * n) + queue + histogram("time_to_first_token_seconds", [0.1] * n)

    bodies = [step(n) for n in range(30)]
    assert {reading.epoch for reading in readings(bodies)} == {"#0"}
    assert diagnosed(bodies).signals["queue_mean_seconds"] == 0


def of_v0(version: str | None) -> EngineReading:
    swapped = 'vllm:num_requests_swapped{model_name="m"} 0\n'
    body = swapped + histogram("request_prefill_time_seconds", [3.0] * 3).replace('engine="0",', "")
    return last([body], facts=EngineFacts(version=version))


# https://github.com/vllm-project/vllm/pull/10853
@pytest.mark.parametrize(
    ("version", "words"),
    [("0.6.4.post1", "swaps prefill and decode time"), (None, "its version is not known"), ("0.6.6", None)],
)
def test_an_old_v0_is_said_to_swap_prefill_and_decode(version: str | None, words: str | None):
    warnings = of_v0(version).warnings
    assert (words is None and warnings == ()) or (words is not None and words in warnings[0])


# https://github.com/vllm-project/vllm/issues/8115
def test_counts_that_do_not_agree_leave_each_histogram_its_own_quantiles():
    """8192 at once: more first tokens than successes, and a sum that fits neither."""

    def step(n: int) -> str:
        late = [0.2] * 900 + [4.0] * 100 if n == 0 else [0.2] * (900 + 50 * n) + [4.0] * 100
        return (
            state(200, 0, 0.5, tokens=9000 * n)
            + histogram("time_to_first_token_seconds", late)
            + gauge("request_success_total", 7 * n, finished_reason="stop")
            + histogram("e2e_request_latency_seconds", [30.0] * (7 * n), total=1e9)
        )

    verdict = diagnosed([step(n) for n in range(30)])
    assert verdict.ttft is not None
    assert verdict.ttft.p95 is not None
    assert verdict.ttft.p95.at_most == 0.25, "only of what was observed within the window"
    assert verdict.bottleneck is Bottleneck.HEALTHY
