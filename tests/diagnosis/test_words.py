"""What people read: it names the thing, says each fact once and stays the same while nothing happens."""

from pathlib import Path

import pytest

from pinchpoint.diagnosis import Bottleneck, Diagnosis, Thresholds, diagnose
from pinchpoint.diagnosis.levers import levers_for
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.snapshot import Window
from tests.diagnosis.case import load

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))


def judged(name: str) -> Diagnosis:
    case = load(CASES / f"{name}.yaml")
    return diagnose(case.window, "chat", case.snapshots[-1].at, Thresholds())


@pytest.mark.parametrize("name", NAMES)
def test_the_evidence_repeats_neither_the_sentence_nor_itself(name: str) -> None:
    diagnosis = judged(name)
    texts = [fact.text for fact in diagnosis.evidence]
    assert len(texts) == len(set(texts))
    assert not [text for text in texts if text in diagnosis.why or diagnosis.why in text]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("hardware")])
def test_a_sick_card_is_named_in_sentence_evidence_and_advice(name: str) -> None:
    diagnosis = judged(name)
    assert diagnosis.why.startswith("GPU")
    assert diagnosis.evidence[0].text.startswith("GPU ")
    assert "GPU" in diagnosis.advice[0].text
    assert all(f"GPU {card}" in diagnosis.advice[0].text for card in ["1"] if f"GPU {card} " in diagnosis.why)


def test_heat_and_power_brake_are_told_apart_and_get_their_own_advice() -> None:
    hot, braked = judged("hardware_thermal_throttle"), judged("hardware_throttle_beats_the_queue_it_makes")
    assert hot.why == "GPU 0 is held back by heat, and requests are late"
    assert hot.evidence[0].text == "GPU 0: slowed down by heat in 100 % of the readings, 5 % is tolerated"
    assert [advice.action for advice in hot.advice] == ["check_cooling", "drain_gpu"]
    assert braked.why == "GPU 0 is held back by the power brake, and requests are late"
    assert [advice.action for advice in braked.advice] == ["check_power", "drain_gpu"]


def test_an_xid_is_told_with_its_meaning() -> None:
    assert judged("hardware_serious_xid").evidence[0].text == "GPU 0: Xid 74 (NVLink error), 1 within the window"


def test_nothing_but_probes_is_idle_for_certain_without_a_rival_and_in_one_stable_sentence() -> None:
    snapshots = load(CASES / "idle_but_for_our_own_probes.yaml").snapshots
    seen = [
        diagnose(Window(300.0, snapshots[: end + 1]), "chat", snapshots[end].at, Thresholds())
        for end in range(10, len(snapshots))
    ]
    assert {diagnosis.bottleneck for diagnosis in seen} == {Bottleneck.IDLE}
    assert {diagnosis.why for diagnosis in seen} == {"nothing but our own probes asks for tokens"}
    assert {diagnosis.runner_up for diagnosis in seen} == {None}
    assert min(diagnosis.confidence_ratio for diagnosis in seen) > 0.95


def test_a_load_that_ended_lately_leaves_no_rival_to_idle() -> None:
    diagnosis = judged("idle_after_load")
    assert (diagnosis.runner_up, diagnosis.confidence_ratio) == (None, 1.0)


def test_a_prefill_storm_says_who_suffers_and_never_more_tokens_than_a_step_may_have(tmp_path: Path) -> None:
    text = (CASES / "compute_prefill_storm.yaml").read_text().replace("8000*3", "8203*3")
    (tmp_path / "storm.yaml").write_text(text)
    case = load(tmp_path / "storm.yaml")
    diagnosis = diagnose(case.window, "chat", case.snapshots[-1].at, Thresholds())
    texts = [fact.text for fact in diagnosis.evidence]
    assert diagnosis.why == "computing prompts fills the engine's steps: first tokens are late"
    assert any(text.startswith("TTFT p95 ") and text.endswith("objective 1.0 s") for text in texts[:2])
    assert "about 8,192 tokens a step, compute-bound from 1,024" in texts
    assert "tensor cores busy 55 % of the time; prefill at its limit shows 45 % and more" in texts
    assert diagnosis.confidence_ratio <= 0.95


def test_the_first_seconds_are_no_outage() -> None:
    starting = judged("unknown_before_the_first_scrape")
    assert starting.collecting
    assert (starting.missing, starting.advice, starting.runner_up) == ((), (), None)
    assert judged("unknown_while_collecting").collecting
    assert not judged("no_data_engine_absent").collecting
    assert not judged("unknown_when_decode_is_slow").collecting


def test_what_is_judged_is_named_and_is_what_the_sentence_stands_on() -> None:
    healthy = judged("healthy_low_traffic")
    assert healthy.ttft is not None
    assert healthy.ttft.judged_by == "mean"
    assert healthy.evidence[0].text.startswith("TTFT mean ")
    assert not healthy.ttft.missed
    late = judged("compute_prefill_storm")
    assert late.ttft is not None
    assert (late.ttft.judged_by, late.ttft.missed) == ("p95", True)


def test_a_latency_below_the_lowest_bucket_is_no_figure_but_its_bound(tmp_path: Path) -> None:
    text = (CASES / "kv_95_percent_and_nothing_waits.yaml").read_text()
    text = text.replace("0.02*2500", "0.004*2500").replace("0.3*3", "0.004*30")
    (tmp_path / "fast.yaml").write_text(text)
    case = load(tmp_path / "fast.yaml")
    fast = diagnose(case.window, "chat", case.snapshots[-1].at, Thresholds())
    assert fast.inter_token is not None
    assert fast.inter_token.p50 is not None
    assert (fast.inter_token.p50.value, fast.inter_token.p50.at_most) == (None, 0.005)
    assert "inter_token_p50_seconds" not in fast.signals
    assert fast.ttft is not None
    assert (fast.ttft.judged_by, fast.ttft.judged_seconds) == ("mean", pytest.approx(0.004))


def test_a_full_cache_that_hurts_nobody_says_so() -> None:
    texts = [fact.text for fact in judged("kv_95_percent_and_nothing_waits").evidence]
    assert "KV cache at 95 %: full, but nobody waits for room" in texts


def test_a_verdict_without_gpus_says_that_they_are_not_watched_and_names_no_signal_of_theirs() -> None:
    signals = Signals(load=Load(scrapes=10.0, requests_waiting=2.0))
    missing = ("gpu_readings", "gpu_tensor_active_ratio")
    (advice,) = levers_for(Bottleneck.UNKNOWN, signals, Thresholds(), missing)
    assert advice.text == "Its GPUs are not watched here: run pinchpoint on their node, and set the engine's gpus."
