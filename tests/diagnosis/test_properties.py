"""Whatever an engine shows, there is one answer, within its bounds, and the same every time."""

from dataclasses import replace
from math import isfinite

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pinchpoint.capacity import judge_scaling
from pinchpoint.diagnosis import Bottleneck, Memory, Thresholds, diagnose, judge_recording, signals_of
from pinchpoint.snapshot import EngineReading, ReplicaReading, Snapshot, Window
from tests.diagnosis.anything import windows


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(windows(), st.floats(0, 100))
def test_any_window_gets_one_bounded_answer_and_the_same_again(window: Window, later: float) -> None:
    now = (window.latest.at if window.latest else 0.0) + later
    verdict = diagnose(window, "chat", now, Thresholds())

    assert verdict.bottleneck in Bottleneck
    assert verdict.why
    assert 0.0 <= verdict.confidence_ratio <= 1.0
    assert all(0.0 <= score <= 1.0 for score in verdict.scores.values())
    assert verdict.runner_up is not verdict.bottleneck
    assert all(isfinite(value) for value in verdict.signals.values())
    for fact in (*verdict.evidence, *verdict.contradicted_by):
        assert fact.text
        assert all(each is None or isfinite(each) for each in (fact.value, fact.threshold))
    assert all(lever.text and lever.action for lever in verdict.advice)
    assert repr(diagnose(window, "chat", now, Thresholds())) == repr(verdict)
    scaling = judge_scaling(verdict)
    assert scaling.reason
    assert scaling.more_gpus_help in (True, False, None)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(windows(most=8))
def test_any_recording_gets_a_class_and_a_timeline_that_runs_forward(window: Window) -> None:
    assume(window.snapshots)
    verdict = judge_recording(window.snapshots, "chat", Thresholds())

    assert verdict.timeline
    assert verdict.diagnosis.bottleneck in {each.bottleneck for each in verdict.timeline}
    moments = [moment for each in verdict.timeline for moment in (each.start, each.end)]
    assert moments == sorted(moments)
    assert 0.0 <= moments[0] <= moments[-1] <= window.snapshots[-1].at - window.snapshots[0].at


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    windows(),
    st.lists(st.integers(1, 4), min_size=6, max_size=6),
    st.lists(st.none() | st.sampled_from(list(Bottleneck)), min_size=1, max_size=3),
)
def test_with_a_memory_of_the_tick_before_the_answer_is_the_same(
    every: Window, repeats: list[int], shown: list[Bottleneck | None]
) -> None:
    """Each scrape is seen for some ticks, as in a daemon, so that there is something to remember."""
    thresholds = Thresholds(window_seconds=10, stale_seconds=3, idle_seconds=4, stall_seconds=4)
    memory, window, at = Memory(thresholds), Window(8.0), 0
    for snapshot, repeat in zip(every.snapshots, repeats, strict=False):
        for _ in range(repeat):
            at += 1
            window = window.append(replace(snapshot, at=float(at)))
            held = shown[at % len(shown)]
            remembered = diagnose(window, "chat", float(at), thresholds, memory, held)
            assert repr(remembered) == repr(diagnose(window, "chat", float(at), thresholds, held=held))


def test_what_is_remembered_of_an_engine_ends_with_it() -> None:
    thresholds = Thresholds()
    reading = EngineReading(engine="chat", at=1.0, replicas=(ReplicaReading(requests_running=1.0),))
    window = Window(300.0).append(Snapshot(at=1.0, engines=(reading,)))
    memory = Memory(thresholds)
    diagnose(window, "chat", 1.0, thresholds, memory)
    signals = signals_of(window, "chat", 1.0, thresholds)
    assert memory.judged("chat", signals) is not None
    memory.forget_all_but(["code"])
    assert memory.judged("chat", signals) is None


def test_between_two_scrapes_no_verdict_moves() -> None:
    """The oldest scrape leaves the window when a new one comes, not some tick before."""
    thresholds, window = Thresholds(window_seconds=20), Window(300.0)
    verdicts = []
    for at in range(45):
        scraped = float(at // 5 * 5)
        replica = ReplicaReading(
            requests_running=8.0, requests_waiting=scraped % 3, generation_tokens_total=100.0 * scraped**1.1
        )
        window = window.append(
            Snapshot(at=float(at), engines=(EngineReading(engine="chat", at=scraped, replicas=(replica,)),))
        )
        verdict = diagnose(window, "chat", float(at), thresholds)
        verdicts.append(replace(verdict, at=scraped, signals={**verdict.signals, "age_seconds": 0.0}))
    assert all(verdicts[at] == verdicts[at // 5 * 5] for at in range(25, 45))
    assert verdicts[25] != verdicts[40]
