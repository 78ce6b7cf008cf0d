"""The roofline of an engine's own steps, from scrapes of known work."""

from dataclasses import replace

import pytest

from pinchpoint.diagnosis import Thresholds
from pinchpoint.diagnosis.signals import Signals, signals_of
from pinchpoint.physics import CONFIGS
from pinchpoint.snapshot import EngineFacts, EngineReading, GpuReading, Histogram, ReplicaReading, Snapshot, Window

BOUNDS = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, float("inf"))
FACTS = EngineFacts(
    kind="vllm", model_config=CONFIGS["meta-llama/Llama-3.1-8B-Instruct"], gpu_name="NVIDIA H100 80GB HBM3"
)
WEIGHTS_SECONDS = 2 * (8_030_261_248 - 128256 * 4096) / 3.35e12  # 4.5 ms at peak
KV_SECONDS = 131072 / 3.35e12  # of one token


def histogram(value: float, count: float) -> Histogram:
    counts = tuple(count * (value <= bound) for bound in BOUNDS)
    return Histogram(BOUNDS, counts, value * count, count)


def replica(second: int, running: float, context: float, steps: float, waiting: float = 0.0) -> ReplicaReading:
    """One that has decoded for ``second`` seconds, ``steps`` a second, of ``running`` requests of ``context``."""
    return ReplicaReading(
        requests_running=running,
        requests_waiting=waiting,
        kv_cache_usage_ratio=running * context / 400_000,
        kv_cache_capacity_tokens=400_000,
        generation_tokens_total=second * steps * running,
        prompt_tokens_total=0.0,
        iteration_tokens=histogram(running, second * steps),
        inter_token_seconds=histogram(1 / steps, second * steps * running),
        ttft_seconds=histogram(0.1, second * 2.0),
    )


def signals(replicas, facts: EngineFacts = FACTS, gpus: tuple[GpuReading, ...] = ()) -> Signals:
    """Of 20 seconds; ``replicas`` makes those of a second."""
    window = Window(300.0)
    for second in range(20):
        reading = EngineReading(engine="chat", at=float(second), replicas=tuple(replicas(second)), facts=facts)
        window = window.append(Snapshot(at=float(second), engines=(reading,), gpus=gpus))
    return signals_of(window, "chat", 19.0, Thresholds())


def test_a_decode_step_reads_the_weights_and_the_cache_of_all_who_run():
    found = signals(lambda second: [replica(second, running=50, context=2000, steps=80)]).roofline

    assert found.step_seconds == pytest.approx(1 / 80, rel=0.01)
    assert found.running_context_tokens == pytest.approx(2000)
    assert found.roofline_step_seconds == pytest.approx(WEIGHTS_SECONDS + 50 * 2001 * KV_SECONDS, rel=0.01)
    assert found.roofline_ratio == pytest.approx(found.memory_bandwidth_utilization_ratio)
    assert found.roofline_compute_share < 0.15


def test_a_step_is_measured_by_the_time_with_requests_alone():
    busy = signals(lambda second: [replica(second, running=50, context=2000, steps=80)]).roofline
    rested = signals(
        lambda second: [replace(replica(second, 50, 2000, steps=40), requests_running=50.0 * (second % 2))]
    ).roofline
    assert rested.step_seconds == pytest.approx(busy.step_seconds, rel=0.06)


def test_replicas_step_for_themselves():
    one = signals(lambda second: [replica(second, running=50, context=2000, steps=80)]).roofline
    two = signals(
        lambda second: [replace(replica(second, 50, 2000, steps=80), replica=name) for name in "01"],
    ).roofline
    assert two.roofline_ratio == pytest.approx(one.roofline_ratio)


def test_ranks_share_the_bytes_and_a_smaller_type_halves_them():
    whole = signals(lambda second: [replica(second, 50, 2000, steps=80)]).roofline
    for facts in (
        replace(FACTS, tensor_parallel_size=2),
        replace(FACTS, quantization="fp8", kv_cache_dtype="fp8"),
    ):
        found = signals(lambda second: [replica(second, 50, 2000, steps=80)], facts).roofline
        assert found.roofline_step_seconds == pytest.approx(whole.roofline_step_seconds / 2, rel=0.01)


def test_without_steps_the_time_between_tokens_is_that_of_a_step():
    whole = signals(lambda second: [replica(second, 50, 2000, steps=80)]).roofline
    without = signals(lambda second: [replace(replica(second, 50, 2000, steps=80), iteration_tokens=None)]).roofline
    assert without.step_seconds == pytest.approx(whole.step_seconds, rel=0.01)
    assert without.roofline_step_seconds == pytest.approx(whole.roofline_step_seconds, rel=0.01)


def test_the_cards_say_their_name_where_no_fact_does():
    def one(second: int):
        return [replica(second, 50, 2000, steps=80)]

    nameless = replace(FACTS, gpu_name=None)
    cards = tuple(
        GpuReading(gpu=index, uuid=index, at=0.0, name=name)
        for index, name in (("0", "NVIDIA H100 80GB HBM3"), ("1", "NVIDIA L4"))
    )
    assert signals(one, nameless).roofline.roofline_ratio is None
    named = signals(one, nameless, cards[:1])
    assert named.roofline == signals(one).roofline
    assert named.facts.gpu_name == FACTS.gpu_name
    assert signals(one, nameless, cards).roofline.roofline_ratio is None  # two kinds: nobody says which


@pytest.mark.parametrize(
    "config", [{}, {"num_hidden_layers": 80}, {**FACTS.model_config, "sliding_window": 512}, {"hidden_size": "x"}]
)
def test_a_model_that_is_not_understood_has_no_roofline(config):
    found = signals(lambda second: [replica(second, 50, 2000, steps=80)], replace(FACTS, model_config=config))
    assert found.roofline.roofline_ratio is None
    assert found.roofline.step_seconds is not None
    assert found.model_flops_utilization_ratio is None


def test_an_idle_engine_has_none_either():
    found = signals(lambda second: [replace(replica(0, 50, 2000, steps=80), requests_running=0.0)]).roofline
    assert found.step_seconds is None
    assert found.roofline_step_seconds is None


def test_the_longer_the_queue_the_later_the_tokens_if_all_ran():
    def then(waiting: float) -> float:
        found = signals(lambda second: [replica(second, 50, 2000, steps=80, waiting=waiting)])
        return found.roofline.inter_token_if_admitted_seconds

    assert then(0) == pytest.approx(1 / 80, rel=0.01)
    kv = 50 * 2000 * KV_SECONDS / 0.75  # what 50 more add to a step, at usual efficiency
    host = (1 / 80 - WEIGHTS_SECONDS / 0.75 - kv) / 2  # and half of what is no work of the GPU
    assert then(50) == pytest.approx(1 / 80 + kv + host, rel=0.02)


def test_a_larger_batch_gains_little_where_most_of_a_step_grows_with_it():
    def gain(context: float, steps: float) -> float:
        slots = signals(lambda second: [replica(second, 50, context, steps=steps, waiting=200)])
        return slots.roofline.admission_gain_ratio

    assert gain(context=200, steps=110) > 2.0  # mostly weights, 9 ms of 50 allowed
    assert gain(context=7000, steps=33) < 1.2  # mostly KV cache, and 30 ms of 50 gone
    assert gain(context=7000, steps=19) < 1.05  # and late already


def test_half_of_the_steps_full_of_prompts_are_half_memory_half_compute():
    def mixed(second: int):
        small, large = histogram(20, second * 15), histogram(2048, second * 15)
        decoding = replica(second, running=20, context=1000, steps=30)
        prompts = {"prompt_tokens_total": second * 30_400.0, "ttft_seconds": histogram(0.1, second * 30.4)}
        return [replace(decoding, iteration_tokens=small.plus(large), **prompts)]

    found = signals(mixed).roofline
    assert 0.5 < found.roofline_compute_share < 0.9  # a step of prompts takes longer
    assert found.compute_utilization_ratio == pytest.approx(15 * 2 * 7.5e9 * 2068 / 989.5e12, rel=0.05)
