"""The parser of server-sent events, against the standard and against what servers really send."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.sse import SseEvent, SseParser, StreamTooLargeError


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes):
    assert parse(b"data: a", end, end, b"data: b", end, end) == [SseEvent("a"), SseEvent("b")]


def test_a_space_after_the_colon_is_optional_and_only_one_is_dropped():
    assert parse(b'data:{"a":1}\n\ndata:  two\n\n') == [SseEvent('{"a":1}'), SseEvent(" two")]


def test_data_lines_of_one_event_are_joined():
    assert parse(b"data: a\ndata: b\ndata\n\n") == [SseEvent("a\nb\n")]


@pytest.mark.parametrize("comment", [b":", b": ping", b":x", b": OPENROUTER PROCESSING", b":" + b"-" * 1000])
def test_comments_of_every_length_are_ignored(comment: bytes):
    assert parse(comment + b"\n\n" + b"data: a\n" + comment + b"\n\n") == [SseEvent("a")]


def test_a_bom_is_dropped_even_when_it_comes_in_pieces():
    assert parse(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [SseEvent("a")]


def test_an_event_name_belongs_to_its_event_alone():
    assert parse(b"event: error\nid: 7\ndata: x\n\ndata: y\n\n") == [SseEvent("x", "error"), SseEvent("y")]


def test_an_event_without_data_is_none():
    assert parse(b"event: ping\n\nretry: 10\n\n") == []


def test_an_event_is_out_as_soon_as_its_blank_line_is():
    parser = SseParser()
    assert parser.feed(b"data: a\r\n\r") == [SseEvent("a")]
    assert parser.feed(b"\ndata: b\n\n") == [SseEvent("b")]


def test_an_unterminated_last_event_comes_with_the_close():
    assert parse(b"data: [DONE]") == [SseEvent("[DONE]")]
    assert parse(b"data: [DONE]\n") == [SseEvent("[DONE]")]


@pytest.mark.parametrize("flood", [b"x" * 11, b"data: a\ndata: b\n"])
def test_an_event_larger_than_the_limit_is_refused(flood: bytes):
    with pytest.raises(StreamTooLargeError, match="larger than 10 bytes"):
        SseParser(max_event_bytes=10).feed(flood)


def test_endless_comments_do_not_add_up_to_the_limit():
    parser = SseParser(max_event_bytes=20)
    assert [parser.feed(b": keepalive\n") for _ in range(100)] == [[]] * 100


line = st.one_of(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12).map(
        lambda text: f"data: {text}"
    ),
    st.sampled_from(["", "", "data", "data:", ": comment", "event: error", "id: 3", "nonsense", "data: é✓\U0001f600"]),
)


@given(
    lines=st.lists(st.tuples(line, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20),
    cuts=st.lists(st.integers(0, 400), max_size=30),
)
def test_any_cut_of_a_stream_gives_the_same_events(lines: list[tuple[str, str]], cuts: list[int]):
    stream = "".join(text + end for text, end in lines).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(places)]
    assert parse(*pieces) == parse(stream)
    assert parse(*(bytes([byte]) for byte in stream)) == parse(stream)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(data: bytes):
    for event in parse(data):
        assert "\r" not in event.data
