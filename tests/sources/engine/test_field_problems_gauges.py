"""Symptoms from the field, of gauges and what is made of them: frozen, asleep, out of range, not there."""

from pathlib import Path

import pytest

from pinchpoint.diagnosis import Bottleneck
from pinchpoint.snapshot import EngineFacts, EngineReading, Reason
from pinchpoint.sources.engine.stillness import FROZEN_AFTER_SECONDS
from tests.sources.engine.sequences import diagnosed, gauge, histogram, readings, state

REAL = Path("tests/data/vllm-real")
SATURATED = (REAL / "d-kv-saturated" / "030.prom").read_text()


def last(bodies: list[str], **given) -> EngineReading:
    return readings(bodies, **given)[-1]


# https://github.com/vllm-project/vllm/issues/29928
def test_gauges_frozen_at_a_full_cache_after_a_mass_abort_are_no_memory_wall():
    frozen = state(0, 0, 0.99, tokens=5000)
    verdict = diagnosed([*[state(106, 30, 0.99, tokens=100 * n) for n in range(50)], *[frozen] * 20])
    assert verdict.bottleneck is Bottleneck.IDLE
    assert verdict.scores.get(Bottleneck.KV_CAPACITY, 0) < 0.5


# https://github.com/vllm-project/vllm/issues/29928
def test_a_usage_that_no_token_moves_is_stale_after_half_a_minute_and_back_with_the_first_token():
    bodies = [state(0, 0, 0.99, tokens=7)] * 40 + [state(1, 0, 0.02, tokens=8)]
    usage = [reading.replicas[0].kv_cache_usage_ratio for reading in readings(bodies)]
    assert usage == [0.99] * (int(FROZEN_AFTER_SECONDS) + 1) + [None] * (39 - int(FROZEN_AFTER_SECONDS)) + [0.02]
    reading = last(bodies[:40])
    assert reading.unavailable == {"kv_cache_usage_ratio": Reason.STALE}
    assert "no token counter has moved" in reading.warnings[0]


def test_an_idle_engine_with_an_empty_cache_has_nothing_stale():
    reading = last([state(0, 0, 0.0, tokens=7)] * 60)
    assert (reading.replicas[0].kv_cache_usage_ratio, reading.warnings) == (0, ())


def test_blocks_held_for_an_engine_that_has_yet_to_fetch_them_are_not_stale():
    body = state(0, 0, 0.4, tokens=7) + histogram("nixl_xfer_time_seconds", [0.1])
    assert last([body] * 60).replicas[0].kv_cache_usage_ratio == 0.4


# https://github.com/vllm-project/vllm/issues/22545
def test_106_running_at_90_percent_and_no_token_for_minutes_is_stalled():
    moving = [state(106, 0, 0.904, tokens=500 * n) for n in range(20)]
    verdict = diagnosed([*moving, *[moving[-1]] * 180])
    assert verdict.bottleneck is Bottleneck.STALLED
    assert "makes no token" in verdict.why
    assert not verdict.scores.get(Bottleneck.KV_CAPACITY)


def test_a_real_saturated_server_whose_exposition_freezes_is_stalled_and_was_a_memory_wall_before():
    alive = [path.read_text() for path in sorted((REAL / "d-kv-saturated").glob("*.prom"))[10:40]]
    assert diagnosed(alive).bottleneck is Bottleneck.KV_CAPACITY
    verdict = diagnosed([*alive, *[alive[-1]] * 60])
    assert verdict.bottleneck is Bottleneck.STALLED
    assert not verdict.scores.get(Bottleneck.KV_CAPACITY)


def test_one_data_parallel_rank_that_stands_still_is_seen_beside_one_that_works():
    def both(n: int) -> str:
        dead = state(8, 20, 0.99, tokens=4000, engine="1")
        return state(8, 0, 0.3, tokens=100 * n, engine="0") + dead

    verdict = diagnosed([both(n) for n in range(60)])
    assert verdict.bottleneck is Bottleneck.STALLED
    assert verdict.why == "1 of the engine's replicas hold requests and make no token"
    reading = last([both(n) for n in range(60)])
    assert [replica.kv_cache_usage_ratio for replica in reading.replicas] == [0.3, None]
    assert "of replica 1 has moved" in reading.warnings[0]


# https://github.com/vllm-project/vllm/issues/20302
def test_a_tiny_usage_under_short_sequential_load_is_real_and_keeps_its_digits():
    bodies = [state(1, 0, 1.7254313e-05, tokens=10 * n) + histogram("time_to_first_token_seconds", [0.02] * n)
              for n in range(20)]  # fmt: skip
    assert last(bodies).replicas[0].kv_cache_usage_ratio == 1.7254313e-05
    assert diagnosed(bodies).bottleneck is Bottleneck.HEALTHY


# https://github.com/vllm-project/vllm-ascend/issues/10048
@pytest.mark.parametrize("usage", ["-0.3875", "1.2", "38.75"])
def test_a_usage_outside_0_to_1_is_dropped_and_told(usage: str):
    body = state(4, 9, 0.5, tokens=1).replace("} 0.5\n", f"}} {usage}\n")
    reading = last([body])
    assert reading.replicas[0].kv_cache_usage_ratio is None
    assert reading.unavailable == {"kv_cache_usage_ratio": Reason.INVALID}
    assert f"kv_cache_usage_perc {usage} is outside 0..1" in reading.warnings[0]


# https://github.com/vllm-project/vllm/issues/5176
def test_a_usage_that_drops_to_0_at_once_with_a_warm_prefix_cache_is_nothing_odd():
    busy = [state(4, 0, 0.6, tokens=100 * n, prompt=1000 * n) for n in range(20)]
    done = state(0, 0, 0.0, tokens=2000, prompt=20_000)
    assert diagnosed([*busy, *[done] * 15]).bottleneck is Bottleneck.IDLE
    assert last([*busy, done]).warnings == ()


# https://github.com/MeetKai/functionary/pull/263
def test_metrics_without_a_value_before_the_first_request_are_unknown_and_warm_up():
    declared = "".join(
        f"# HELP vllm:{name} Text.\n# TYPE vllm:{name} {kind}\n"
        for name, kind in (("num_requests_running", "gauge"), ("gpu_cache_usage_perc", "gauge"),
                           ("prompt_tokens_total", "counter"), ("time_to_first_token_seconds", "histogram"))
    )  # fmt: skip
    reading = last([declared])
    assert reading.replicas[0].requests_running is None
    assert reading.unavailable == {"requests_running": Reason.STARTING}
    assert "warms up" in reading.warnings[0]
    verdict = diagnosed([declared] * 10)
    assert verdict.bottleneck is Bottleneck.UNKNOWN
    assert verdict.why == "the engine's metrics have no values yet: it warms up, or has served no request"


# https://github.com/vllm-project/vllm/issues/17406
def test_the_http_families_are_not_needed():
    without = "".join(line for line in SATURATED.splitlines(keepends=True) if "http_" not in line)
    assert "http_request" in SATURATED
    assert last([without]) == last([SATURATED])


# https://github.com/vllm-project/vllm/issues/23444
def test_near_a_full_cache_waiting_requests_and_preemptions_make_the_memory_wall():
    def full(n: int, kv: float, waiting: int, preempted: float) -> str:
        return state(40, waiting, kv, tokens=200 * n) + gauge("num_preemptions_total", preempted)

    assert diagnosed([full(n, 0.97, 30, 2 * n) for n in range(30)]).bottleneck is Bottleneck.KV_CAPACITY
    calm = [full(n, 0.97, 0, 0) + histogram("time_to_first_token_seconds", [0.1] * n) for n in range(30)]
    assert diagnosed(calm).bottleneck is Bottleneck.HEALTHY


def asleep(awake: int, offloaded: int, discarded: int) -> str:
    states = {"awake": awake, "weights_offloaded": offloaded, "discard_all": discarded}
    sleep = "".join(gauge("engine_sleep_state", value, sleep_state=name) for name, value in states.items())
    return state(0, 0, 0.0, tokens=50) + sleep


# https://github.com/vllm-project/vllm/issues/24175 , https://github.com/vllm-project/vllm/pull/42658
@pytest.mark.parametrize(
    ("states", "expected", "level"),
    [((1, 0, 0), Bottleneck.IDLE, 0), ((0, 1, 0), Bottleneck.SLEEPING, 1), ((0, 0, 1), Bottleneck.SLEEPING, 2)],
)
def test_an_engine_that_was_put_to_sleep_is_not_idle(states, expected, level):
    bodies = [asleep(*states)] * 20
    assert diagnosed(bodies).bottleneck is expected
    replica = last(bodies).replicas[0]
    assert (replica.awake, replica.sleep_level) == (level == 0, level)


# https://github.com/vllm-project/vllm/issues/26850
def test_no_figure_for_free_kv_memory_is_made_up():
    invented = gauge("available_kv_cache_memory_bytes", 4e9)
    with_it, without = last([state(1, 0, 0.5, 1) + invented]), last([state(1, 0, 0.5, 1)])
    assert with_it == without
    assert without.replicas[0].kv_cache_capacity_tokens is None


# https://github.com/vllm-project/vllm/pull/18053
@pytest.mark.parametrize("version", ["0.8.5", "0.9.2", "v0.9.0.1"])
def test_several_api_servers_on_an_old_v1_are_believed_less(version: str):
    bodies = [state(40, 30, 0.97, tokens=200 * n) + gauge("num_preemptions_total", 2 * n) for n in range(30)]
    old, new = (diagnosed(bodies, facts=EngineFacts(version=each)) for each in (version, "0.12.0"))
    one_server = diagnosed([f"process_start_time_seconds 1.7e9\n{body}" for body in bodies],
                           facts=EngineFacts(version=version))  # fmt: skip
    assert old.bottleneck is new.bottleneck is one_server.bottleneck is Bottleneck.KV_CAPACITY
    assert old.confidence_ratio == pytest.approx(0.7 * new.confidence_ratio, abs=1e-3)
    assert one_server.confidence_ratio == new.confidence_ratio
    assert "several API servers" in last(bodies, facts=EngineFacts(version=version)).warnings[0]
