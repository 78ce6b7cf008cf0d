"""The definitions of TTFT, TTFC, TPOT and the flags, on exact stamps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.lateness import Lateness
from pinchpoint.sources.probe.timing import timing
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

MS = 1_000_000
STAMPS = Stamps(
    started_ns=0,
    resolve_started_ns=0,
    resolved_ns=5 * MS,
    connect_started_ns=0,
    ready_ns=20 * MS,
    sent_ns=21 * MS,
    headers_ns=30 * MS,
)


def text(kind: TextKind = TextKind.CONTENT, usage: int | None = None) -> StreamEvent:
    return StreamEvent(
        text=kind, characters=4, choices=True, usage=None if usage is None else Usage(completion_tokens=usage)
    )


def used(tokens: int, reasoning: int | None = None) -> StreamEvent:
    return StreamEvent(usage=Usage(completion_tokens=tokens, reasoning_tokens=reasoning))


def heard(*events: tuple[float, StreamEvent]) -> Transcript:
    """A transcript of events at milliseconds after the request was sent."""
    transcript = Transcript()
    for milliseconds, event in events:
        transcript.add(event, round((21 + milliseconds) * MS))
    return transcript


def steady(tokens: int, first: float = 100, gap: float = 10) -> list[tuple[float, StreamEvent]]:
    return [(first + i * gap, text()) for i in range(tokens)]


def test_the_definitions_hold_on_a_steady_stream():
    times = timing(STAMPS, heard((99, StreamEvent(choices=True)), *steady(50), (600, used(50))))
    assert times.ttft_seconds == pytest.approx(0.100)
    assert times.ttfc_seconds == pytest.approx(0.100)
    assert times.tpot_seconds == pytest.approx(0.010)
    assert (times.completion_tokens, times.token_source) == (50, "usage")
    assert not (times.at_once)
    assert not (times.lumps)
    assert not (times.coalesced)
    assert times.discarded == ()


def test_the_phases_follow_one_another_and_add_up():
    phases = timing(replace(STAMPS, handshake_started_ns=8 * MS), heard(*steady(50))).phases
    assert phases == pytest.approx(
        {
            "resolve": 0.005,
            "connect": 0.003,
            "tls": 0.012,
            "send": 0.001,
            "headers": 0.009,
            "first_token": 0.091,
            "first_content": 0.0,
            "generation": 0.490,
        }
    )
    assert sum(phases.values()) == pytest.approx(0.021 + 0.100 + 0.490)


def test_silent_events_start_no_clock():
    times = timing(STAMPS, heard((1, StreamEvent(choices=True)), (2, StreamEvent()), (3, used(0))))
    assert (times.ttft_seconds, times.ttfc_seconds, times.tpot_seconds) == (None, None, None)
    assert "first_token" not in times.phases


def test_reasoning_starts_ttft_and_content_starts_ttfc():
    thinking = [(100 + i * 10, text(TextKind.REASONING)) for i in range(20)]
    times = timing(STAMPS, heard(*thinking, (400, text()), (410, used(21, reasoning=20))))
    assert times.ttft_seconds == pytest.approx(0.100)
    assert times.ttfc_seconds == pytest.approx(0.400)
    assert times.phases["first_content"] == pytest.approx(0.300)
    assert times.tpot_seconds == pytest.approx(0.300 / 20), "streamed reasoning is text like any other"


def test_hidden_reasoning_is_not_in_the_pace_of_the_text():
    times = timing(STAMPS, heard(*steady(20), (400, used(120, reasoning=100))))
    assert times.tpot_seconds == pytest.approx(0.010)
    assert times.completion_tokens == 120


def test_the_tokens_of_the_first_chunk_were_not_waited_for():
    events = [(100.0, text(usage=5)), *[(100 + i * 30, text(usage=5 + i * 3)) for i in range(1, 6)]]
    assert timing(STAMPS, heard(*events)).tpot_seconds == pytest.approx(0.150 / 15)


def test_a_chunk_of_several_tokens_counts_all_of_them():
    speculative = [(100 + i * 30, text()) for i in range(10)]
    assert timing(STAMPS, heard(*speculative, (400, used(28)))).tpot_seconds == pytest.approx(0.010)


def test_without_usage_the_chunks_are_counted_and_it_says_so():
    times = timing(STAMPS, heard(*steady(12)))
    assert (times.completion_tokens, times.token_source) == (12, "chunks")
    assert times.tpot_seconds == pytest.approx(0.010)


@pytest.mark.parametrize(
    "events",
    [
        steady(8),  # seven gaps
        [(100, text()), (200, text()), (210, used(40))],  # two chunks
        [(100, text()), (210, used(40))],
    ],
    ids=["few gaps", "two chunks", "one chunk"],
)
def test_too_little_text_has_no_pace(events: list[tuple[float, StreamEvent]]):
    times = timing(STAMPS, heard(*events))
    assert times.tpot_seconds is None
    assert times.ttft_seconds == pytest.approx(0.100)


def test_nine_tokens_make_eight_gaps_and_a_pace():
    assert timing(STAMPS, heard(*steady(9))).tpot_seconds == pytest.approx(0.010)


def test_text_that_came_all_at_once_was_held_back_and_has_no_latency():
    times = timing(STAMPS, heard(*[(500.0, text())] * 20, *[(500.5, text())] * 20, (500.5, used(40))))
    assert times.at_once
    assert (times.ttft_seconds, times.ttfc_seconds, times.tpot_seconds) == (None, None, None)
    assert times.gaps_seconds == ()


def lumps(chunks: int, reads: int, gap: float) -> list[tuple[float, StreamEvent]]:
    return [(100 + i * gap, text()) for i in range(reads) for _ in range(chunks)]


def test_text_in_a_few_lumps_was_held_back_and_is_timed_as_the_client_sees_it():
    times = timing(STAMPS, heard(*lumps(chunks=12, reads=4, gap=120), (500, used(48))))
    assert times.lumps
    assert not times.at_once
    assert times.ttft_seconds == pytest.approx(0.100)
    assert times.tpot_seconds == pytest.approx(0.010), "the first lump was not waited for"


@pytest.mark.parametrize(
    "events",
    [lumps(chunks=20, reads=2, gap=20), lumps(chunks=2, reads=16, gap=30), lumps(chunks=7, reads=2, gap=70)],
    ids=["a fast engine", "chunks in pairs", "a short answer"],
)
def test_what_comes_in_smaller_lumps_is_not_taken_for_a_buffer(events: list[tuple[float, StreamEvent]]):
    times = timing(STAMPS, heard(*events))
    assert not (times.lumps)
    assert not (times.at_once)


def test_the_gaps_are_those_between_reads():
    times = timing(STAMPS, heard((100, text()), (100, text()), (130, text()), (135, text()), (140, used(9))))
    assert times.gaps_seconds == pytest.approx((0.030, 0.005))
    assert times.tokens_per_chunk == pytest.approx(9 / 4)


def test_the_tokens_of_a_chunk_are_not_guessed():
    assert timing(STAMPS, heard(*steady(12))).tokens_per_chunk is None


def test_a_short_answer_in_one_read_is_no_buffer():
    times = timing(STAMPS, heard(*[(100.0, text())] * 12))
    assert not times.at_once
    assert times.tpot_seconds is None


def test_two_large_chunks_are_coalesced_not_buffered():
    times = timing(STAMPS, heard((100, text()), (100, text()), (100, used(40))))
    assert times.coalesced
    assert not times.at_once
    assert times.tpot_seconds is None


def late_at(milliseconds: float, seconds: float) -> Lateness:
    """A loop that was late by ``seconds``, ``milliseconds`` after the request was sent, and on time otherwise."""
    at_ns = round((21 + milliseconds) * MS)
    return lambda begin, end: seconds if begin <= at_ns <= end else 0.0


@pytest.mark.parametrize(
    ("milliseconds", "discarded"),
    [(0, ()), (100, ("ttft", "ttfc", "tpot")), (290, ("tpot",)), (50, ()), (200, ())],
    ids=["sent", "first text", "last text", "before the text", "in its middle"],
)
def test_a_late_loop_spoils_what_it_stamped_then_and_nothing_else(milliseconds: float, discarded: tuple[str, ...]):
    times = timing(STAMPS, heard(*steady(20)), late_at(milliseconds, 0.08))
    assert times.discarded == discarded
    assert (times.ttft_seconds is None) is ("ttft" in discarded)
    assert (times.tpot_seconds is None) is ("tpot" in discarded)


@pytest.mark.parametrize("lateness", [0.009, 0.15], ids=["less than the floor", "a small share"])
def test_a_lateness_that_does_not_matter_spoils_nothing(lateness: float):
    assert timing(STAMPS, heard(*steady(50, first=2000, gap=100)), late_at(2000, lateness)).discarded == ()


def test_a_loop_that_was_late_by_less_than_the_text_would_have_taken_is_no_excuse():
    assert timing(STAMPS, heard(*[(500.0, text())] * 40), lambda _begin, _end: 0.03).at_once


@pytest.mark.parametrize("lump", [[(500.0, text())] * 40, lumps(chunks=12, reads=4, gap=120)], ids=["one", "four"])
def test_a_late_loop_does_not_accuse_a_proxy(lump: list[tuple[float, StreamEvent]]):
    times = timing(STAMPS, heard(*lump), lambda _begin, _end: 0.3)
    assert not (times.at_once)
    assert not (times.lumps)
    assert times.gaps_seconds == ()


def test_without_a_connection_there_is_nothing():
    times = timing(Stamps(started_ns=0), Transcript())
    assert times.ttft_seconds is None
    assert times.phases == {}


@given(
    gaps=st.lists(st.integers(0, 10**9), max_size=60),
    tokens=st.none() | st.integers(0, 500),
    hidden=st.none() | st.integers(0, 500),
)
def test_no_stream_gives_a_negative_or_endless_number(gaps: list[int], tokens: int | None, hidden: int | None):
    transcript, now = Transcript(), STAMPS.headers_ns or 0
    for gap in gaps:
        now += gap
        transcript.add(text(), now)
    if tokens is not None:
        transcript.add(used(tokens, hidden), now)
    times = timing(STAMPS, transcript)
    for seconds in (times.ttft_seconds, times.ttfc_seconds, times.tpot_seconds, *times.phases.values()):
        assert seconds is None or 0 <= seconds <= 61
