"""The class of a recording is the one that held most of the time under load."""

from pathlib import Path

from pinchpoint.diagnosis import Bottleneck, Interval, Thresholds, judge_recording
from tests.diagnosis.case import load

CASES = Path(__file__).parent / "cases"


def test_idle_time_does_not_outvote_the_load(tmp_path: Path) -> None:
    busy = """requests_running: 0x200 20x60 0, requests_waiting: 0, kv_cache_usage_ratio: 0x200 0.3x60 0,
        generation_tokens_total: 0x200 500x60 0, prompt_tokens_total: 0x200 500x60 0,
        ttft_seconds: 0.1*0x200 0.1*3x60 0.1*0, inter_token_seconds: 0.01*0x200 0.01*500x60 0.01*0"""
    path = tmp_path / "mostly_idle.yaml"
    path.write_text(f'about: ""\nexpect: idle\nsteps: 500\nreplicas: {{"0": {{{busy}}}}}')

    verdict = judge_recording(load(path).snapshots, "chat", Thresholds())

    assert verdict.diagnosis.bottleneck is Bottleneck.HEALTHY
    assert verdict.timeline == (
        Interval(start=0.0, end=200.0, bottleneck=Bottleneck.IDLE),
        Interval(start=200.0, end=269.0, bottleneck=Bottleneck.HEALTHY),
        Interval(start=269.0, end=499.0, bottleneck=Bottleneck.IDLE),
    )


def test_the_evidence_is_that_of_the_class_it_stands_beside() -> None:
    case = load(CASES / "scheduler_slots_full.yaml")

    diagnosis = judge_recording(case.snapshots, "chat", Thresholds()).diagnosis

    assert diagnosis.bottleneck is Bottleneck.SCHEDULER
    assert "queue_held_by_slots_share" in {evidence.signal for evidence in diagnosis.evidence}


def test_seconds_count_from_the_first_scrape() -> None:
    case = load(CASES / "scheduler_slots_full.yaml")

    verdict = judge_recording(case.snapshots[10:], "chat", Thresholds())

    assert verdict.timeline == (Interval(start=0.0, end=19.0, bottleneck=Bottleneck.SCHEDULER),)


def test_probes_that_come_every_half_minute_are_compared_with_the_engine_in_a_recording_too(tmp_path: Path) -> None:
    text = (CASES / "on_the_way_under_load_the_engines_median_counts.yaml").read_text()
    path = tmp_path / "longer.yaml"
    path.write_text(text.replace("steps: 110", "steps: 240").replace("[10, ", "[10, 130, 160, 190, 220, "))

    diagnosis = judge_recording(load(path).snapshots, "chat", Thresholds()).diagnosis

    assert "network_ttft_share" in {evidence.signal for evidence in diagnosis.evidence}


def test_the_runner_up_is_the_class_that_held_next_longest_and_takes_from_the_confidence(tmp_path: Path) -> None:
    full = "scheduler_slots_full.yaml"
    alone = judge_recording(load(CASES / full).snapshots, "chat", Thresholds()).diagnosis
    path = tmp_path / "two.yaml"
    path.write_text(
        """about: For a while the cache is full, then the slots are.
expect: kv_capacity
steps: 180
facts: {max_num_seqs: 32}
replicas:
  "0": {requests_running: 20x100 32x80, requests_waiting: 12, kv_cache_usage_ratio: 0.99x100 0.4x80,
        preemptions_total: 1x100 0x80, prompt_tokens_total: 300, generation_tokens_total: 900, ttft_seconds: 9*1,
        inter_token_seconds: 0.02*900}
"""
    )

    diagnosis = judge_recording(load(path).snapshots, "chat", Thresholds()).diagnosis

    assert (diagnosis.bottleneck, diagnosis.runner_up) == (Bottleneck.KV_CAPACITY, Bottleneck.SCHEDULER)
    assert alone.runner_up is not Bottleneck.KV_CAPACITY
    assert diagnosis.confidence_ratio < 0.9
