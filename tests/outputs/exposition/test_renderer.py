import gzip
import subprocess
from dataclasses import fields, is_dataclass, replace
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from structlog.testing import capture_logs

from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.catalog import CATALOG, Kind, Metric
from pinchpoint.outputs.exposition import Renderer
from pinchpoint.snapshot import Absence, Histogram, ProbeOutcome, Reason
from tests.outputs.exposition.scenes import HISTOGRAM, empty_scene, engine, full_scene, gpu, settled


def samples(families) -> list[tuple[str, tuple[tuple[str, str], ...], float]]:
    return [(s.name, tuple(sorted(s.labels.items())), s.value) for family in families for s in family.samples]


def both(renderer: Renderer, scene):
    text, openmetrics = renderer.render(scene)
    return samples(parse_text(text.plain.decode())), samples(parse_openmetrics(openmetrics.plain.decode()))


def ours(every):
    return [s for s in every if s[0].startswith("pinchpoint_")]


def of(name, every):
    return {tuple(value for _, value in labels): number for sample, labels, number in every if sample == name}


def row(read, kind=Kind.GAUGE, labels=("who",), name="thing") -> tuple[Metric, ...]:
    return (Metric(name=name, kind=kind, help="A thing.", labels=labels, read=lambda _: read),)


def test_both_formats_tell_the_same_and_every_row_of_the_table_is_there():
    text, openmetrics = both(Renderer(), full_scene())
    assert ours(text) == ours(openmetrics)
    names = {name for name, _, _ in text}
    assert [m.full_name for m in CATALOG if not set(m.series_names) <= names] == []


def test_no_series_appears_twice_even_with_eight_gpus_and_four_engines_of_two_replicas():
    text, _ = both(Renderer(), full_scene(gpus=8, engines=4, replicas=2))
    keys = [(name, labels) for name, labels, _ in text]
    assert len(keys) == len(set(keys))


def test_promtool_finds_nothing_to_complain_about():
    text, _ = Renderer().render(full_scene())
    done = subprocess.run(["/usr/bin/promtool", "check", "metrics"], input=text.plain, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_gzipped_body_is_the_plain_body():
    for rendered in Renderer().render(full_scene()):
        assert gzip.decompress(rendered.gzipped()) == rendered.plain


def test_openmetrics_ends_with_eof_and_text_has_none():
    text, openmetrics = Renderer().render(empty_scene())
    assert openmetrics.plain.endswith(b"\n# EOF\n")
    assert b"# EOF" not in text.plain


def test_before_the_first_reading_the_daemon_still_tells_of_itself():
    text, _ = both(Renderer(), empty_scene())
    names = {name for name, _, _ in text}
    assert {"pinchpoint_build_info", "pinchpoint_simulated", "process_start_time_seconds"} <= names
    assert not any(name.startswith(("pinchpoint_gpu_", "pinchpoint_engine_")) for name in names)


def test_what_is_unknown_is_absent_and_a_lost_gpu_keeps_only_its_state_and_counters():
    text, _ = both(Renderer(), full_scene(gpus=1))
    lost = {name for name, labels, _ in text if dict(labels).get("uuid") == "GPU-1"}
    assert lost == {
        "pinchpoint_gpu_up",
        "pinchpoint_gpu_info",
        "pinchpoint_gpu_state",
        "pinchpoint_gpu_xid_errors_total",
        "pinchpoint_gpu_xid_last_timestamp_seconds",
    }
    assert of("pinchpoint_gpu_up", text)[("1", "GPU-1")] == 0


def test_an_engine_that_is_absent_is_down_and_says_why():
    text, _ = both(Renderer(), full_scene())
    assert of("pinchpoint_engine_up", text) == {("chat",): 1, ("gone",): 0}
    assert of("pinchpoint_metric_unavailable", text) == {("", "connect_refused", "engine/gone"): 1}


def test_exactly_one_class_is_one():
    text, _ = both(Renderer(), full_scene())
    classes = of("pinchpoint_bottleneck", text)
    assert len(classes) == 16
    assert [labels for labels, value in classes.items() if value == 1] == [("kv_capacity", "chat")]
    assert of("pinchpoint_bottleneck_class_code", text) == {("chat",): 4}


def test_failure_reasons_exist_before_the_first_failure():
    text, _ = both(Renderer(), full_scene())
    failures = of("pinchpoint_probe_failures_total", text)
    assert len(failures) == 2 * (len(ProbeOutcome) - 1)
    assert set(failures.values()) == {0}


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_number_that_is_not_finite_is_never_written(value):
    scene = full_scene(gpus=0)
    scene = replace(scene, snapshot=replace(scene.snapshot, gpus=(gpu(power_watts=value, utilization_ratio=1.0),)))
    text, openmetrics = both(Renderer(), scene)
    for every in (text, openmetrics):
        assert of("pinchpoint_gpu_power_watts", every) == {}
        assert of("pinchpoint_gpu_utilization_ratio", every) == {("0", "GPU-0"): 1.0}


@pytest.mark.parametrize(
    "histogram",
    [
        Histogram((), (), 0, 0),
        Histogram((1.0, 2.0), (1, 2), 3, 2),
        Histogram((2.0, 1.0, inf), (1, 2, 3), 3, 3),
        Histogram((1.0, inf), (3, 2), 3, 2),
        Histogram((1.0, inf), (nan, 2), 3, 2),
        Histogram((1.0, inf), (1, inf), 3, inf),
    ],
)
def test_a_histogram_that_makes_no_sense_is_left_out(histogram):
    text, openmetrics = both(Renderer(row([(("a",), histogram)], Kind.HISTOGRAM)), empty_scene())
    assert ours(text) == ours(openmetrics) == []


def test_a_histogram_with_a_negative_sum_keeps_its_buckets():
    histogram = replace(HISTOGRAM, sum=-0.5)
    text, openmetrics = both(Renderer(row([(("a",), histogram)], Kind.HISTOGRAM)), empty_scene())
    assert {name for name, _, _ in ours(text)} == {"pinchpoint_thing_bucket"}
    assert ours(text) == ours(openmetrics)


def test_a_negative_counter_is_left_out():
    text, openmetrics = both(Renderer(row([(("a",), -1)], Kind.COUNTER, name="thing_total")), empty_scene())
    assert ours(text) == ours(openmetrics) == []


def test_two_engines_of_one_name_give_one_series_and_one_warning():
    scene = full_scene()
    twins = replace(scene, snapshot=replace(scene.snapshot, engines=(engine("chat"), engine("chat"))))
    renderer = Renderer()
    with capture_logs() as logs:
        text, _ = both(renderer, twins)
        renderer.render(twins)
        renderer.render(scene)
        renderer.render(scene)
    keys = [(name, labels) for name, labels, _ in text]
    assert len(keys) == len(set(keys))
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


def test_a_series_that_is_gone_leaves_the_body_and_comes_back():
    renderer, scene = Renderer(), full_scene()
    without = replace(scene, snapshot=replace(scene.snapshot, gpus=()))
    with_gpu, _ = both(renderer, scene)
    gone, _ = both(renderer, without)
    again, _ = both(renderer, scene)
    assert of("pinchpoint_gpu_power_watts", gone) == {}
    assert ours(again) == ours(with_gpu)


def test_changed_buckets_of_the_same_series_are_written_with_their_own_bounds():
    histogram = HISTOGRAM
    table = (
        Metric(name="thing", kind=Kind.HISTOGRAM, help="A.", labels=("who",), read=lambda _: [(("a",), histogram)]),
    )
    renderer = Renderer(table)
    renderer.render(empty_scene())
    histogram = Histogram((0.2, inf), (1, 2), 1.0, 2)
    text, _ = both(renderer, empty_scene())
    assert of("pinchpoint_thing_bucket", text) == {("0.2", "a"): 1, ("+Inf", "a"): 2}


def test_bucket_bounds_are_written_as_the_python_client_writes_them():
    histogram = Histogram((0.005, 1, 10.0, 2e7, inf), (1, 1, 1, 1, 1), 1, 1)
    text, _ = both(Renderer(row([((), histogram)], Kind.HISTOGRAM, labels=())), empty_scene())
    assert [le for (le,) in of("pinchpoint_thing_bucket", text)] == ["0.005", "1.0", "10.0", "2e+07", "+Inf"]


HOSTILE = st.text(st.characters(), max_size=300) | st.sampled_from(
    ['"', "\\", "\\n", 'a"b\\', "\n# EOF\n", "\ud800", "\u202e", "x" * 10_000]
)


@settings(max_examples=100, deadline=None)
@given(
    names=st.lists(HOSTILE, max_size=5),
    values=st.lists(st.floats() | st.integers(-(2**70), 2**70) | st.booleans() | st.none(), min_size=5, max_size=5),
)
def test_whatever_the_labels_and_values_both_bodies_parse_back_to_the_same_samples(names, values):
    read = [((name,), value) for name, value in zip(names, values, strict=False)]
    text, openmetrics = both(Renderer(row(read)), empty_scene())
    assert ours(text) == ours(openmetrics)
    assert len(ours(text)) <= len(read)
    for _, ((_, label),), _ in ours(text):
        assert label.isprintable()
        assert len(label) <= 200
    finite = [float(v) for _, v in read if v is not None and abs(v) < inf]
    assert all(value in finite for _, _, value in ours(text))


@settings(max_examples=50, deadline=None)
@given(
    bounds=st.lists(st.floats(0, 1e9), unique=True, max_size=8).map(sorted),
    steps=st.lists(st.integers(0, 10**6), min_size=9, max_size=9),
    total=st.floats(0, 1e12),
)
def test_every_sound_histogram_parses_back_to_itself(bounds, steps, total):
    counts = [float(sum(steps[: n + 1])) for n in range(len(bounds) + 1)]
    histogram = Histogram((*bounds, inf), tuple(counts), total, counts[-1])
    text, openmetrics = both(Renderer(row([((), histogram)], Kind.HISTOGRAM, labels=())), empty_scene())
    assert ours(text) == ours(openmetrics)
    buckets = of("pinchpoint_thing_bucket", text)
    assert [float(le) for (le,) in buckets] == list(histogram.bounds)
    assert list(buckets.values()) == counts
    assert of("pinchpoint_thing_sum", text) == {(): total}
    assert of("pinchpoint_thing_count", text) == {(): counts[-1]}


def test_an_absence_with_a_hostile_name_breaks_no_line():
    scene = empty_scene()
    bad = Absence('engine/a"} 1\n# EOF', Reason.DNS, "x", 0.0)
    text, openmetrics = both(Renderer(), replace(scene, snapshot=replace(scene.snapshot, absences=(bad,))))
    assert ours(text) == ours(openmetrics)
    assert of("pinchpoint_engine_up", text) == {('a"} 1# EOF',): 0}


def moved(value):
    """The same thing a moment later: every number in it is another one, every text the same."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value + 0.125
    if isinstance(value, tuple):
        return tuple(moved(each) for each in value)
    if isinstance(value, dict):
        return {key: moved(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, Histogram):
        return replace(value, **{field.name: moved(getattr(value, field.name)) for field in fields(value)})
    return value


def test_a_gpu_whose_readings_change_keeps_its_series():
    scene = full_scene()
    later = replace(scene, snapshot=replace(scene.snapshot, gpus=moved(scene.snapshot.gpus)))
    before, after = (both(Renderer(), each)[0] for each in (scene, later))
    gpus = [
        {(name, labels) for name, labels, _ in each if name.startswith("pinchpoint_gpu_")} for each in (before, after)
    ]
    assert gpus[0] == gpus[1]
    assert before != after


def test_why_a_field_of_an_engine_is_not_known_is_told_beside_its_other_series():
    scene = full_scene()
    told = replace(scene.snapshot.engines[0], unavailable={"estimated_flops_per_gpu_total": Reason.NOT_ENABLED})
    text, _ = both(Renderer(), replace(scene, snapshot=replace(scene.snapshot, engines=(told,))))
    assert of("pinchpoint_metric_unavailable", text)[
        ("engine_estimated_flops_per_gpu_total", "not_enabled", "engine/chat")
    ]


CHANGES = (
    lambda scene: scene,
    lambda scene: replace(scene, snapshot=replace(scene.snapshot, engines=moved(scene.snapshot.engines))),
    lambda scene: replace(scene, snapshot=replace(scene.snapshot, engines=scene.snapshot.engines[1:])),
    lambda scene: replace(scene, snapshot=replace(scene.snapshot, engines=(engine("chat"), engine("chat")))),
    lambda scene: replace(
        scene, snapshot=replace(scene.snapshot, engines=(engine("x" * 300), engine("x" * 299 + "y")))
    ),
    lambda scene: replace(scene, snapshot=replace(scene.snapshot, engines=(engine("100 % %s"), engine("chat", 2)))),
    lambda scene: replace(scene, verdicts={**scene.verdicts, "chat": settled("chat", Bottleneck.COMPUTE)}),
    lambda scene: replace(scene, class_seconds={key: n + 1 for key, n in scene.class_seconds.items()}),
    lambda scene: replace(scene, class_seconds={}, verdicts={}, scaling={}),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), max_size=6))
def test_whatever_was_rendered_before_a_scene_is_rendered_as_by_a_new_renderer(changes):
    kept, scene = Renderer(), full_scene(engines=2)
    for change in changes:
        scene = change(scene)
        ours_alone = [
            [line for line in body.plain.splitlines() if line.startswith(b"pinchpoint_")]
            for renderer in (kept, Renderer())
            for body in renderer.render(scene)
        ]
        assert ours_alone[0] == ours_alone[1] == ours_alone[2] == ours_alone[3]
        assert len(ours_alone[0]) == len({line.rpartition(b" ")[0] for line in ours_alone[0]})
