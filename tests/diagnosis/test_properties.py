"""Whatever an engine shows, there is one answer, within its bounds, and the same every time."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.diagnosis import Bottleneck, Memory, Thresholds, diagnose, signals_of
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    GpuReading,
    GpuState,
    Histogram,
    Reason,
    ReplicaReading,
    Slo,
    Snapshot,
    Window,
)

number = st.none() | st.floats() | st.integers(-10, 10_000).map(float) | st.sampled_from([0.0, 1.0, 1e308, -1.0])
histogram = st.none() | st.builds(
    lambda counts, total: Histogram((1.0, 10.0, float("inf")), tuple(counts), total, counts[-1]),
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(sorted),
    st.floats(),
)
replica = st.builds(
    ReplicaReading,
    replica=st.sampled_from(["0", "1"]),
    requests_running=number,
    requests_waiting=number,
    requests_waiting_by_reason=st.dictionaries(st.sampled_from(["capacity", "deferred"]), st.floats()),
    kv_cache_usage_ratio=number,
    preemptions_total=number,
    prompt_tokens_total=number,
    generation_tokens_total=number,
    awake=st.none() | st.booleans(),
    ttft_seconds=histogram,
    inter_token_seconds=histogram,
    iteration_tokens=histogram,
)
gpu = st.builds(
    GpuReading,
    gpu=st.sampled_from(["0", "1"]),
    uuid=st.just("GPU-x"),
    at=st.just(0.0),
    up=st.booleans(),
    state=st.sampled_from(list(GpuState)),
    utilization_ratio=number,
    tensor_active_ratio=number,
    clock_hertz=st.dictionaries(st.sampled_from(["sm", "graphics"]), st.floats()),
    clock_max_hertz=st.dictionaries(st.sampled_from(["sm", "graphics"]), st.floats()),
    throttle_active=st.dictionaries(st.sampled_from(["hw_slowdown", "sw_power_cap"]), st.floats()),
    xid_errors_total=st.dictionaries(st.sampled_from(["79", "31"]), st.floats()),
)
facts = st.builds(
    EngineFacts,
    max_num_seqs=st.none() | st.integers(-1, 300),
    max_num_batched_tokens=st.none() | st.integers(-1, 300),
    gpu_name=st.sampled_from([None, "NVIDIA H200", "nonsense"]),
    model_config=st.dictionaries(st.sampled_from(["num_parameters", "hidden_size"]), st.integers() | st.text()),
)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    snapshots = []
    for second in range(draw(st.integers(0, 6))):
        reading = EngineReading(
            engine="chat",
            at=float(second),
            replicas=tuple(draw(st.lists(replica, max_size=2))),
            facts=draw(facts),
            slo=Slo(),
            epoch=draw(st.sampled_from(["a", "b"])),
        )
        present = draw(st.booleans())
        absence = Absence("engine/chat", Reason.TIMEOUT, "late", float(second))
        snapshots.append(
            Snapshot(
                at=float(second),
                engines=(reading,) if present else (),
                absences=() if present else (absence,),
                gpus=tuple(draw(st.lists(gpu, max_size=2))),
            )
        )
    return Window(300.0, tuple(snapshots))


@settings(max_examples=200, deadline=None)
@given(windows(), st.floats(0, 100))
def test_any_window_gets_one_bounded_answer_and_the_same_again(window: Window, later: float) -> None:
    verdict = diagnose(window, "chat", later, Thresholds())

    assert verdict.bottleneck in Bottleneck
    assert verdict.why
    assert 0.0 <= verdict.confidence_ratio <= 1.0
    assert all(0.0 <= score <= 1.0 for score in verdict.scores.values())
    assert verdict.runner_up is not verdict.bottleneck
    assert all(value == value and abs(value) != float("inf") for value in verdict.signals.values())
    assert diagnose(window, "chat", later, Thresholds()) == verdict


@settings(max_examples=200, deadline=None)
@given(windows(), st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_with_a_memory_of_the_tick_before_the_answer_is_the_same(every: Window, repeats: list[int]) -> None:
    """Each scrape is seen for some ticks, as in a daemon, so that there is something to remember."""
    thresholds = Thresholds(window_seconds=10, stale_seconds=3, idle_seconds=4, stall_seconds=4)
    memory, window, at = Memory(thresholds), Window(8.0), 0
    for snapshot, repeat in zip(every.snapshots, repeats, strict=False):
        for _ in range(repeat):
            at += 1
            window = window.append(replace(snapshot, at=float(at)))
            remembered = diagnose(window, "chat", float(at), thresholds, memory)
            assert repr(remembered) == repr(diagnose(window, "chat", float(at), thresholds))


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
