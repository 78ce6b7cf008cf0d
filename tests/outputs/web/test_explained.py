"""What a card says of a verdict: its facts with their thresholds, what speaks against it, levers, the last hours."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.diagnosis import Bottleneck, Course, Interval
from pinchpoint.diagnosis.verdict import Advice, Evidence
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web.course import CELLS, SPANS, strip
from pinchpoint.outputs.web.page import page
from pinchpoint.outputs.web.static import STYLE
from tests.outputs.web import scenes
from tests.outputs.web.test_page import Reader, read

NOW = 100_000.0
HOUR = 3600.0
NBSP = "\N{NO-BREAK SPACE}"


def course(*seconds: tuple[float, Bottleneck | None], until: float = NOW) -> Course:
    """So long each, up to ``until``; ``None`` is a time when nobody looked."""
    at, found = until - sum(each for each, _ in seconds), []
    for each, bottleneck in seconds:
        if bottleneck is not None:
            found.append(Interval(start=at, end=at + each, bottleneck=bottleneck))
        at += each
    return tuple(found)


def drawn(told: Course) -> list[tuple[str, float, float]]:
    """Class, left edge and width in percent of each part of a strip."""
    found = re.findall(r'<rect class="c-(\w+)" x="([\d.]+)%" width="([\d.]+)%"', strip(told, NOW, 0.0) or "")
    return [(name, float(x), float(width)) for name, x, width in found]


def with_course(scene: Scene, told: Course) -> Scene:
    offset = scene.snapshot.at - NOW
    moved = tuple(replace(each, start=each.start + offset, end=each.end + offset) for each in told)
    return replace(scene, courses={"chat": moved})


def test_a_strip_shows_each_class_at_its_time_and_a_gap_where_nobody_looked() -> None:
    told = course((3 * HOUR, Bottleneck.HEALTHY), (HOUR, None), (2 * HOUR, Bottleneck.KV_CAPACITY))
    assert drawn(told) == [("healthy", 0.0, 50.0), ("kv_capacity", pytest.approx(66.67), pytest.approx(33.33))]


def test_what_is_worst_in_a_cell_is_seen_however_short_it_was() -> None:
    told = course((3 * HOUR, Bottleneck.HEALTHY), (1.0, Bottleneck.STALLED), (3 * HOUR - 1, Bottleneck.HEALTHY))
    assert [name for name, _, _ in drawn(told)] == ["healthy", "stalled", "healthy"]
    assert f"Stalled <b>1{NBSP}s</b>" in (strip(told, NOW, 0.0) or ""), "the legend has it as it was"


def test_what_holds_for_longer_than_the_strip_fills_it_and_its_title_tells_since_when() -> None:
    told = course((30 * HOUR, Bottleneck.HEALTHY))
    html = strip(told, NOW, 1_800_000_000.0 - NOW) or ""
    assert drawn(told) == [("healthy", 0.0, 100.0)]
    assert f"Healthy, 2027-01-14 02:00:00 to 08:00:00 UTC (1{NBSP}d 6{NBSP}h)" in html
    assert f"Classes over the last 6{NBSP}h: healthy 6{NBSP}h" in html


def test_the_card_tells_the_last_hours_in_a_legend_and_to_a_screen_reader() -> None:
    told = course((HOUR, Bottleneck.HEALTHY), (HOUR, None), (0.5 * HOUR, Bottleneck.KV_CAPACITY))
    reader = read(with_course(scenes.kv_full(), told))
    label = next(attrs["aria-label"] for tag, attrs in reader.tags if tag == "svg" and attrs.get("class") == "strip")
    assert label == f"Classes over the last 3{NBSP}h: healthy 1{NBSP}h, out of KV cache 30{NBSP}min"
    legend = [attrs["class"] for tag, attrs in reader.tags if tag == "span" and "key c-" in (attrs.get("class") or "")]
    assert legend == ["key c-healthy", "key c-kv_capacity"]
    assert "Nobody looked " in reader.texts


def test_nothing_is_drawn_of_an_engine_that_was_not_judged_yet() -> None:
    assert strip((), NOW, 0.0) is None
    assert 'class="strip"' not in page(scenes.starting())


def test_every_class_has_a_colour_of_its_own() -> None:
    colours = dict(re.findall(r"\.c-(\w+) \{ --class: (#\w+)", STYLE.body.decode()))
    assert set(colours) == set(Bottleneck)
    assert len(set(colours.values())) == len(Bottleneck)


lengths = st.floats(0, 20_000, allow_subnormal=False)


@given(st.lists(st.tuples(lengths, st.none() | st.sampled_from(list(Bottleneck))), max_size=30))
def test_whatever_the_course_the_strip_stays_in_its_picture_and_its_parts_apart(
    seconds: list[tuple[float, Bottleneck | None]],
) -> None:
    told = course(*seconds)
    parts = drawn(told)
    assert bool(parts) == bool(told and any(each.end >= NOW - SPANS[-1] for each in told))
    reached = 0.0
    for _, x, width in parts:
        assert x >= reached - 0.02
        assert width >= 100 / CELLS - 0.01
        reached = x + width
    assert reached <= 100.02


def test_a_ratio_is_drawn_with_the_mark_of_its_threshold_and_what_speaks_against_is_told() -> None:
    reader = read(scenes.kv_full())
    labels = [attrs.get("aria-label") for tag, attrs in reader.tags if tag == "svg" and attrs.get("role") == "meter"]
    assert f"kv cache usage ratio, threshold 90{NBSP}%" in labels
    assert reader.texts[reader.texts.index("Against: ") + 1] == "32 of 64 slots are taken in a tenth of the scrapes"


def test_a_lever_is_told_with_its_flag_its_reason_its_effect_and_its_risk() -> None:
    reader = read(scenes.kv_full())
    texts = reader.texts
    for words in ("--kv-cache-dtype fp8", "About twice the tokens fit", "97 % of the KV cache is in use, in 16 bits"):
        assert words in texts
    assert texts[texts.index("Risk") + 1] == "Check answers: long contexts lose most."
    assert "Then 1 more lever, in this order" in texts
    assert "--data-parallel-size 2" in texts
    assert [bool(attrs.get("id")) for tag, attrs in reader.tags if tag == "details"] == [True], "to stay open by"


def test_foreign_words_in_a_verdict_stay_words() -> None:
    bad = scenes.HOSTILE
    lever = Advice(action="x", text=bad, reason=bad, effect=bad, flag=bad, risk=bad)
    against = (Evidence(signal=bad + "_ratio", text=bad, value=0.5, threshold=0.6),)
    shown = scenes.kv_full()
    verdict = shown.verdicts["chat"]
    diagnosis = replace(verdict.diagnosis, why=bad, advice=(lever, lever), contradicted_by=against, missing=(bad,))
    html = page(replace(shown, verdicts={"chat": replace(verdict, diagnosis=diagnosis)}))
    assert "<script>alert" not in html
    assert Reader(html).open == []
