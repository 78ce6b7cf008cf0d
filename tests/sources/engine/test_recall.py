"""A body read with what is remembered of the one before says what it says without."""

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.engine_body import Body
from pinchpoint.sources.engine.exposition import parse
from pinchpoint.sources.engine.recall import Recall
from pinchpoint.sources.http import SourceError

DATA = Path(__file__).parents[2] / "data" / "engine-metrics"
BODIES = sorted(path for path in DATA.iterdir() if path.name != "README.md")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def told(body: bytes, content_type: str | None, recall: Recall | None) -> str:
    try:
        families = parse(body, content_type, recall)
    except SourceError as error:
        return str(error)
    # Of a set the order says nothing, of everything else it is part of the answer.
    return repr((families.samples, sorted(families.declared), families.malformed_lines))


LINES = (
    'a{x="1"} %s',
    'a{x="2"} %s',
    "b %s",
    'b{x="} "} %s',
    "c_created %s",
    "a %s 1395066363000",
    'a_bucket{le="1"} %s # {t="x"} 1 2',
    "# TYPE a counter",
    "# TYPE %s",
    "# HELP b what %s is",
    "# EOF",
    " a %s",
    "a  %s",
    "a\t%s",
    "a{%s",
    "",
    "%s",
)
VALUES = ("0", "1", "2.5", "1e3", "NaN", "+Inf", "-0.0", "1_0", "x", "", "\u0661", "1\r", "0" * 70)


@settings(max_examples=400, deadline=None)
@given(
    first=st.lists(st.sampled_from(LINES), max_size=8),
    bodies=st.lists(
        st.tuples(
            st.none() | st.lists(st.sampled_from(LINES), max_size=8),
            st.lists(st.sampled_from(VALUES), min_size=8, max_size=8),
        ),
        min_size=1,
        max_size=4,
    ),
    end=st.sampled_from(["\n", "", "\n# EOF", "\n# EOF\n"]),
    content_type=st.sampled_from([None, OPENMETRICS]),
)
def test_any_sequence_of_bodies_says_the_same_with_a_memory_as_without(first, bodies, end, content_type):
    recall, lines = Recall(), first
    for others, values in bodies:
        lines = lines if others is None else others
        filled = (line % value if "%s" in line else line for line, value in zip(lines, values, strict=False))
        body = ("\n".join(filled) + end).encode()
        assert told(body, content_type, recall) == told(body, content_type, None)


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name)
def test_every_real_body_says_the_same_when_it_comes_again(path):
    body, recall = path.read_bytes(), Recall()
    for _ in range(3):
        assert told(body, None, recall) == told(body, None, None)


def test_a_body_of_the_same_shape_is_read_in_a_fraction_of_the_time():
    body, recall = Body(0), Recall()
    seconds = {}
    for name, remembered in (("with", recall), ("without", None)):
        parse(body.answer(), None, remembered)
        taken = []
        for _ in range(20):
            answer, began = body.answer(), process_time()
            parse(answer, None, remembered)
            taken.append(process_time() - began)
        seconds[name] = min(taken)
    assert seconds["with"] < seconds["without"] / 1.5


def test_equal_values_of_a_body_are_one_object():
    recall = Recall()
    for _ in range(2):
        families = parse(b'a{x="1"} 1234.5\na{x="2"} 1234.5\n', None, recall)
    one, other = families.samples["a"]
    assert one.value is other.value
