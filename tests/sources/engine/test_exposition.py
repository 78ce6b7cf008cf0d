"""The line parser, against its rules, against prometheus_client, and against noise."""

import math
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_reference
from prometheus_client.parser import text_string_to_metric_families as text_reference

from pinchpoint.snapshot import Reason
from pinchpoint.sources.engine.exposition import MAX_LABELS, MAX_SAMPLES, Sample, parse
from pinchpoint.sources.http.failure import SourceError

DATA = Path("tests/data")
# tgi and llamacpp have counters without _total, to which prometheus_client adds it.
EXPOSITIONS = [*sorted(DATA.glob("engine-metrics/[vs]*.prom")), *sorted(DATA.glob("vllm-real/*/000.prom"))]
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def refused(body: bytes, content_type: str | None = None) -> Reason:
    with pytest.raises(SourceError) as caught:
        parse(body, content_type)
    assert "\n" not in caught.value.detail
    return caught.value.reason


def only(line: str) -> Sample:
    ((sample,),) = parse(line.encode() + b"\n").samples.values()
    return sample


def as_triples(families) -> list[tuple]:
    return sorted(
        (s.name, tuple(sorted(s.labels.items())), s.value)
        for family in families
        for s in family.samples
        if math.isfinite(s.value) and not s.name.endswith("_created")
    )


def ours_as_triples(body: bytes, content_type: str | None = None) -> list[tuple]:
    return sorted(
        (name, tuple(sorted(s.labels.items())), s.value)
        for name, samples in parse(body, content_type).samples.items()
        for s in samples
    )


@pytest.mark.parametrize("path", EXPOSITIONS, ids=lambda path: path.name)
def test_every_exposition_reads_as_prometheus_client_reads_it(path: Path):
    body = path.read_bytes()
    assert ours_as_triples(body) == as_triples(text_reference(body.decode()))
    assert parse(body).malformed_lines == 0


@pytest.mark.parametrize(
    "name", ["vllm-0.33.0-v1-openmetrics-allow-utf-8", "vllm-0.33-rust-frontend-openmetrics-synthetic"]
)
def test_openmetrics_reads_as_prometheus_client_reads_it(name: str):
    body = (DATA / f"engine-metrics/{name}.om.txt").read_bytes()
    assert ours_as_triples(body, OPENMETRICS) == as_triples(openmetrics_reference(body.decode()))


def test_a_body_that_prometheus_client_rejects_is_read():
    body = (DATA / "engine-metrics/vllm-0.33.0-v1-openmetrics-escaping-underscores.om.txt").read_bytes()
    with pytest.raises(ValueError, match="Clashing name"):
        list(openmetrics_reference(body.decode()))
    assert parse(body, OPENMETRICS).samples["vllm_prompt_tokens_total"][0].value == 68608


NAMES = st.from_regex(r"\A[a-z_:][a-z0-9_:]{0,8}\Z").filter(lambda name: not name.endswith("_created"))
TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=12)
LABELS = st.dictionaries(st.from_regex(r"\A[a-z][a-z0-9_]{0,6}\Z"), TEXT, max_size=4)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def written(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value!r}\n"


@given(st.lists(st.tuples(NAMES, LABELS, st.floats(allow_nan=False, allow_infinity=False)), max_size=6))
def test_what_is_written_is_what_is_read(lines):
    body = "".join(written(*line) for line in lines)
    expected = sorted((name, tuple(sorted(labels.items())), value) for name, labels, value in lines)
    assert ours_as_triples(body.encode()) == expected


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.text(alphabet='vllm:_{}",=\\ #\n0.e+TYPEOF', max_size=200).map(str.encode),
        st.tuples(st.integers(0, 9000), st.binary(max_size=3)).map(
            lambda cut: EXPOSITIONS[0].read_bytes()[: cut[0]] + cut[1]
        ),
    ),
    st.sampled_from([None, OPENMETRICS, "text/html"]),
)
def test_no_bytes_raise_anything_but_the_rooms_own_error(body: bytes, content_type: str | None):
    with suppress(SourceError):
        families = parse(body, content_type)
        assert all(math.isfinite(s.value) for samples in families.samples.values() for s in samples)


@given(st.integers(1, 40_000))
def test_a_body_cut_anywhere_but_at_a_line_end_is_truncated(cut: int):
    body = (DATA / "engine-metrics/vllm-0.33.0-v1.prom").read_bytes()[:cut]
    if not body.endswith(b"\n"):
        assert refused(body) is Reason.TRUNCATED


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>vllm:num_requests_running 3</body></html>",
        b"<html>\n<p>\nup 1\n</html>\n",
        b'{"detail": "Not Found"}',
        b"[]",
        b"Not Found",
        b"\x00\x01\x02\x7fELF\n\x00\x00",
    ],
)
def test_what_is_no_exposition_is_called_so(body: bytes):
    assert refused(body) is Reason.NOT_EXPOSITION


@pytest.mark.parametrize(
    "body", [b'vllm:num_requests_running{engine="0",mo', b"vllm:num_requests_running 1", b"# HELP vl"]
)
def test_half_a_line_alone_is_truncated(body: bytes):
    assert refused(body) is Reason.TRUNCATED


def test_openmetrics_without_its_end_is_truncated_and_text_needs_none():
    assert refused(b"a 1\n", OPENMETRICS) is Reason.TRUNCATED
    assert parse(b"a 1\n", "text/plain; version=0.0.4").samples["a"][0].value == 1
    assert parse(b"a 1\n# EOF", OPENMETRICS).samples["a"][0].value == 1


def test_what_follows_the_end_of_openmetrics_is_not_read():
    assert "b" not in parse(b"a 1\n# EOF\nb 2\n", OPENMETRICS).samples


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("a 1", {}, 1),
        ("a\t{} 1.5e3 1700000000000", {}, 1500),
        ('a{x="1",} 2', {"x": "1"}, 2),
        (r'a{x="q\"b\\n\n"} 3', {"x": 'q"b\\n\n'}, 3),
        ('a{_block_size_resolved="True",l="[]"} 1', {"_block_size_resolved": "True", "l": "[]"}, 1),
        ('a_bucket{le="0.1"} 8 # {trace_id="x"} 0.05 1700000000', {"le": "0.1"}, 8),
        ('{"a.b",x="1"} 4', {"x": "1"}, 4),
        ("a\t1", {}, 1),
        ('a{b="c"}\t1\t1700000000', {"b": "c"}, 1),
        ('a{b="c"}1', {"b": "c"}, 1),
        ('a{x="} 9 # {"} 5', {"x": "} 9 # {"}, 5),
    ],
)
def test_a_line_in_any_dialect_is_read(line: str, labels: dict, value: float):
    assert only(line) == Sample(labels, value)


@pytest.mark.parametrize("line", ["a 1_000", "a ١", "a", "a 1 2 3", 'a{x="1" 1', "a{x=1} 1", 'a{="1"} 1', "1a 2"])
def test_a_malformed_line_is_skipped_and_counted(line: str):
    families = parse(f"good 1\n{line}\nbetter 2\n".encode())
    assert families.malformed_lines == 1
    assert families.samples.keys() == {"good", "better"}


def test_nan_infinity_and_created_series_are_left_out():
    families = parse(b"a NaN\nb +Inf\nc -nan\nd_total 1\nd_created 1.7e9\n")
    assert families.samples.keys() == {"d_total"}


def test_carriage_returns_and_a_byte_order_mark_do_no_harm():
    assert parse(b"\xef\xbb\xbfa 1\r\nb 2\r\n").samples.keys() == {"a", "b"}


def test_a_line_separator_inside_a_label_ends_no_line():
    assert only('a{x="one\u2028two\x0bthree"} 1').labels == {"x": "one\u2028two\x0bthree"}


def test_too_many_samples_are_too_large():
    assert refused(b"a 1\n" * (MAX_SAMPLES + 1)) is Reason.TOO_LARGE


def test_a_line_with_too_many_labels_is_malformed():
    labels = ",".join(f'l{i}="x"' for i in range(MAX_LABELS + 1))
    assert parse(f"good 1\na{{{labels}}} 1\n".encode()).malformed_lines == 1


def test_declared_names_are_known_without_a_sample():
    families = parse(b"# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\n")
    assert families.declared == {"vllm:num_requests_running"}
    assert families.samples == {}


@pytest.mark.parametrize("line", [b"\n", b"a\n", b"#\n", b"# TYPE a gauge\n"])
def test_a_body_of_nothing_but_line_ends_is_refused_before_it_is_taken_apart(line: bytes) -> None:
    body = line * (16_000_000 // len(line))
    tracemalloc.start()
    reason = refused(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reason is Reason.TOO_LARGE
    assert peak < 1_000_000
