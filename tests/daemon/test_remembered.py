"""What outlives a process is taken for what it is: as of a moment, by a clock that may have been set since."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.daemon.remembered import MOST_BYTES, SAVE_SECONDS, ForeignError, Remembered, from_text, to_text
from pinchpoint.diagnosis import Bottleneck, Interval, Shown

NOON = 1_800_000_000.0
KV, HEALTHY = Bottleneck.KV_CAPACITY, Bottleneck.HEALTHY


def chat(until: float = NOON, intervals: int = 1) -> Remembered:
    course = [
        Interval(start=until - 600 + n / 10, end=until - 600 + (n + 1) / 10, bottleneck=HEALTHY)
        for n in range(intervals)
    ]
    return Remembered(
        shown=Shown(bottleneck=KV, since=until - 60, until=until),
        class_seconds={KV: 60.0, HEALTHY: 500.0, Bottleneck.IDLE: 0.0},
        course=(*course, Interval(start=until - 60, end=until, bottleneck=KV)),
    )


def test_what_ended_by_itself_is_read_as_it_was_written() -> None:
    assert from_text(to_text({"chat": chat()}, ended=True), NOON + 3600) == {"chat": chat()}


def test_no_counter_goes_back_after_a_kill_and_none_begins_by_it() -> None:
    text = to_text({"chat": chat()}, ended=False)
    soon, late = (from_text(text, NOON + after)["chat"].class_seconds for after in (4.0, 86_400.0))
    assert soon == {KV: 64.0, HEALTHY: 504.0, Bottleneck.IDLE: 0.0}
    assert SAVE_SECONDS <= late[KV] - 60.0 <= SAVE_SECONDS + 5


def test_a_clock_that_was_set_back_leaves_nothing_in_the_future() -> None:
    known = from_text(to_text({"chat": chat()}, ended=False), NOON - 30)["chat"]
    assert known.class_seconds == chat().class_seconds
    assert known.course[-1].end == NOON - 30
    assert known.shown.until == NOON, "so that nobody takes it for older than it is"


def test_the_clock_of_readings_is_another() -> None:
    there = chat().moved(-NOON)
    assert (there.shown.until, there.course[-1].end) == (0.0, 0.0)
    assert there.moved(NOON) == chat()


def test_a_fleet_that_is_too_much_for_a_file_is_remembered_without_its_course() -> None:
    many = chat(intervals=240)
    text = to_text({f"{n} {'x' * 5000}": many for n in range(1500)}, ended=True)
    assert len(text) < MOST_BYTES
    assert next(iter(from_text(text, NOON).values())).course == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\udcff",
        '{"format": "pinchpoint verdicts 2", "ended": true, "engines": {}}',
        '{"format": "pinchpoint verdicts 1", "ended": true, "engines": {"chat": {}}}',
        to_text({"chat": chat()}, ended=True).replace("kv_capacity", "bad_luck"),
        to_text({"chat": chat()}, ended=True).replace("500.0", "-500.0"),
        to_text({"chat": chat()}, ended=True).replace("500.0", "NaN"),
        to_text({"chat": chat()}, ended=True).replace("500.0", "1e300"),
        '{"format": "pinchpoint verdicts 1", "ended": true, "engines": {"\\u001b[2J\\n": 5}}',
        to_text({"chat": chat()}, ended=True).replace(str(NOON - 600), "-1.0"),
        to_text({"chat": chat()}, ended=True)[:-20],
        "[" * 100_000,
    ],
)
def test_what_is_not_ours_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ForeignError) as refused:
        from_text(text.encode("utf-8", "surrogateescape"), NOON)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


moments = st.floats(0, allow_infinity=False)


@given(st.lists(st.tuples(moments, moments, st.sampled_from(["idle", "healthy"])), max_size=6), moments, moments)
def test_whatever_times_a_file_holds_the_course_runs_forward_and_ends_by_now(
    timeline: list[tuple[float, float, str]], since: float, now: float
) -> None:
    engine = {"shown": "idle", "since": since, "until": 0.0, "seconds": {"idle": 1.0}, "timeline": timeline}
    text = json.dumps({"format": "pinchpoint verdicts 1", "ended": False, "engines": {"chat": engine}})
    known = from_text(text, now)["chat"]
    ends = [moment for each in known.course for moment in (each.start, each.end)]
    assert ends == sorted(ends)
    assert all(moment <= now for moment in ends)
    assert known.shown.since <= known.shown.until
    assert 1.0 <= known.class_seconds[Bottleneck.IDLE] < 100.0
