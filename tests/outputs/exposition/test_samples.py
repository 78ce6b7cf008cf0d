"""What is evaluated in process is what a scrape would have found."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pinchpoint.outputs.catalog import CATALOG, Kind, Metric
from pinchpoint.outputs.exposition import Renderer, samples_of
from pinchpoint.outputs.label import shown
from pinchpoint.snapshot import Histogram
from tests.outputs.exposition.scenes import empty_scene, engine, full_scene

ALL = frozenset(name for metric in CATALOG for name in metric.series_names)
Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(scene, catalog=CATALOG) -> Found:
    text, _ = Renderer(catalog).render(scene)
    families = parse_text(text.plain.decode())
    every = ((s.name, frozenset(s.labels.items()), s.value) for family in families for s in family.samples)
    return {(name, labels): value for name, labels, value in every if not name.startswith(("process_", "python_"))}


def taken(scene, names=ALL, catalog=CATALOG) -> Found:
    found: Found = {}
    for name, label_names, label_values, value in samples_of(scene, names, catalog):
        found.setdefault((name, frozenset(zip(label_names, label_values, strict=True))), value)
    return found


def test_every_series_of_a_full_node_is_what_the_body_says():
    scene = full_scene(gpus=2, engines=2, replicas=2)
    assert taken(scene) == scraped(scene)
    assert len(taken(scene)) > 500
    assert taken(empty_scene()) == scraped(empty_scene())


def test_only_the_names_that_are_asked_for_are_taken():
    names = {"pinchpoint_engine_up", "pinchpoint_engine_ttft_seconds_count"}
    found = taken(full_scene(), names)
    assert {name for name, _ in found} == names
    assert found.items() <= scraped(full_scene()).items()


def test_of_two_engines_of_one_name_the_one_that_the_body_has_comes_first():
    scene = full_scene()
    twins = (engine("chat", at=99.0), engine("chat", replicas=2))
    scene = replace(scene, snapshot=replace(scene.snapshot, engines=twins))
    assert taken(scene) == scraped(scene)


HISTOGRAMS = st.floats().map(lambda total: Histogram((1.0, float("inf")), (1, 2), total, 2))
VALUES = st.one_of(st.none(), st.floats(), HISTOGRAMS)


SAMPLES = st.lists(st.tuples(st.text(max_size=250), VALUES), max_size=5, unique_by=lambda sample: shown(sample[0]))


@settings(max_examples=200)
@given(SAMPLES, st.sampled_from([Kind.GAUGE, Kind.HISTOGRAM]))
def test_whatever_the_labels_and_values_the_samples_are_those_of_the_body(given_samples, kind):
    read = [((label,), value) for label, value in given_samples]
    metric = Metric(name="thing", kind=kind, help="A thing.", labels=("who",), read=lambda _: read)
    assert taken(empty_scene(), metric.series_names, (metric,)) == scraped(empty_scene(), (metric,))
