"""The page as text: what a reader must find, and what must not get through."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.class_words import CLASS_COLOURS, CLASS_WORDS
from pinchpoint.outputs.dashboards.looks import CLASSES
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web import page
from pinchpoint.outputs.web.drawings import bar, spark
from pinchpoint.outputs.web.markup import MAX_TEXT, el, text
from pinchpoint.outputs.web.page import CARDS
from pinchpoint.outputs.web.words import SEVERITIES, reason_in_words, throttle_in_words
from pinchpoint.snapshot import DiscoveryReport, Reason, Snapshot, ThrottleReason
from tests.outputs.web import scenes

LATE = "our own event loop was late, so no TTFT was taken"
VOID = {"meta", "link"}


class Reader(HTMLParser):
    """Reads a page as a browser would: its tags, its texts, and whether every tag is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def articles(self) -> list[str]:
        return [attrs["aria-label"] or "" for tag, attrs in self.tags if tag == "article"]


def read(scene: Scene | None) -> Reader:
    return Reader(page(scene))


@pytest.mark.parametrize(
    "scene",
    [scenes.healthy(), scenes.kv_full(), scenes.throttled(), scenes.no_data(), scenes.empty(), scenes.full_node(),
     scenes.hostile(), None],
)  # fmt: skip
def test_every_page_is_well_formed_and_needs_nothing_from_elsewhere(scene: Scene | None) -> None:
    reader = read(scene)
    assert reader.open == []
    for tag, attributes in reader.tags:
        assert "style" not in attributes, "the content security policy forbids inline styles"
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert not (attributes.get(name) or "").startswith(("http", "//")), tag
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_hostile_names_stay_text_and_are_cut() -> None:
    html = page(scenes.hostile())
    reader = Reader(html)
    assert [attributes.get("src", "")[:14] for tag, attributes in reader.tags if tag == "script"] == ["static/page.js"]
    assert "<script>alert" not in html
    assert any(piece.startswith("<script>alert('x')</script>\"&") for piece in reader.texts)
    assert "A" * MAX_TEXT not in html
    assert len(html) < 60_000


def test_a_name_with_a_lone_surrogate_does_not_break_the_page() -> None:
    page(scenes.kv_full(name="chat\ud800")).encode("utf-8", "replace")


@given(st.text(st.characters(categories=["Cc", "Cs", "L"])))
def test_what_cannot_be_seen_is_shown_to_be_there(value: str) -> None:
    assert text(value).isprintable()
    assert len(text(value)) == min(len(value), MAX_TEXT)


@given(st.text())
def test_no_text_can_open_a_tag_or_leave_an_attribute(value: str) -> None:
    reader = Reader(el("p", value, title=value))
    assert [(tag, list(attributes)) for tag, attributes in reader.tags] == [("p", ["title"])]
    assert len(text(value)) <= MAX_TEXT * len("&quot;")


def test_four_engines_and_eight_gpus_fit_in_60_kb() -> None:
    assert len(page(scenes.full_node()).encode()) < 60_000


def test_the_worst_engine_comes_first() -> None:
    assert read(scenes.full_node()).articles() == [
        "Engine chat: Out of KV cache",
        "Engine embed: No data",
        "Engine code: Batch limit reached",
        "Engine summarize: Healthy",
    ]


@pytest.mark.parametrize(
    ("scene", "sentence"),
    [
        (scenes.kv_full(), "The engine is pinched: out of KV cache"),
        (scenes.healthy(), "The engine is healthy"),
        (scenes.no_data(), "The engine gives no data"),
        (scenes.throttled(), "The engine is pinched: GPU hardware trouble"),
        (scenes.empty(), "No engine is watched here"),
        (scenes.full_node(), "2 of 4 engines pinched · 1 can't be judged · GPU 7 down"),
    ],
)
def test_the_headline_says_how_the_node_is(scene: Scene, sentence: str) -> None:
    assert sentence in read(scene).texts


@pytest.mark.parametrize(
    ("targets", "shards", "title"),
    [
        (2, 2, "The lists' engines are other shards'"),
        (0, 2, "No engine in the lists"),
        (0, None, "No engine in the lists"),
    ],
)
def test_an_empty_page_tells_empty_lists_from_the_engines_of_other_shards(
    targets: int, shards: int | None, title: str
) -> None:
    scene = scenes.empty()
    lists = (DiscoveryReport(discovery="file/fleet", targets=targets),)
    report = replace(scene.self_report, discoveries=lists, shard=0, shards=shards)
    assert title in read(replace(scene, self_report=report)).texts


def test_a_pinched_engine_says_why_what_to_do_and_whether_more_gpus_help() -> None:
    texts = read(scenes.kv_full()).texts
    for expected in (
        "Out of KV cache",
        "kv_capacity",
        "for 3\N{NO-BREAK SPACE}min 20\N{NO-BREAK SPACE}s",
        "KV cache at 97 % of its blocks, threshold 90 %",
        "Store the KV cache in FP8: half the bytes a token.",
        "Yes",
        "over SLO 2.00\N{NO-BREAK SPACE}s",
    ):
        assert expected in texts
    assert any(
        "next: batch limit reached (score 0.42, this one 0.91) · can't see: dram active" in piece for piece in texts
    )


def test_the_kv_gauge_tells_its_value_to_a_screen_reader() -> None:
    meters = [a for tag, a in read(scenes.kv_full()).tags if tag == "svg" and a.get("role") == "meter"]
    gauge = next(a for a in meters if a["aria-label"] == "KV cache in use")
    assert (gauge["aria-valuenow"], gauge["class"]) == ("97", "bar warn")


def test_an_absent_engine_shows_the_reason_and_no_old_numbers() -> None:
    texts = read(scenes.no_data()).texts
    assert "Connection refused" in texts
    assert "meta-llama/Llama-3.1-70B-Instruct" in texts, "who it was is still known"
    assert "KV cache" not in texts


def test_a_lost_gpu_shows_its_state_and_remedy_instead_of_readings() -> None:
    texts = read(scenes.full_node()).texts
    assert "Lost" in texts
    assert "fell off the bus (Xid 79); drain the node and power-cycle it" in texts


def test_a_hot_card_says_so_and_a_failed_probe_names_its_remedy() -> None:
    assert "too hot" in read(scenes.throttled()).texts
    assert "The key was refused: put a valid one into BACKUP_API_KEY." in read(scenes.full_node()).texts


def test_an_unknown_kv_usage_is_a_dash_and_an_empty_track() -> None:
    at = 5.0
    snapshot = scenes.Snapshot(at=at, engines=(scenes.engine("chat", at, kv=None),))
    reader = read(scenes.scene([snapshot]))
    assert ("KV cache in use: unknown", "img") in [(a.get("aria-label"), a.get("role")) for _, a in reader.tags]
    assert "–" in reader.texts


def test_no_tile_is_red_beside_a_verdict_that_nobody_suffers() -> None:
    assert "over SLO 2.00\N{NO-BREAK SPACE}s" not in read(scenes.turning()).texts
    assert "over SLO 2.00\N{NO-BREAK SPACE}s" in read(scenes.kv_full()).texts


def test_the_tile_shows_in_large_what_is_judged() -> None:
    texts = read(scenes.kv_full()).texts
    assert texts[texts.index("TPOT") + 1 : texts.index("TPOT") + 4] == ["40.0\N{NO-BREAK SPACE}ms", " ", "mean"]
    assert texts[texts.index("TTFT") + 3] == "p95"


def test_a_quantile_below_the_lowest_bucket_is_shown_as_its_bound() -> None:
    verdict = scenes.healthy().verdicts["chat"]
    texts = read(scenes.scene(scenes.fast(), [verdict])).texts
    bound = "≤\N{NO-BREAK SPACE}10.0\N{NO-BREAK SPACE}ms"
    assert {f"p50 {bound}", f"p95 {bound}"} <= set(texts)


def test_the_first_seconds_are_neutral_and_no_outage() -> None:
    reader = read(scenes.starting())
    assert "Starting: first verdict in a few seconds" in reader.texts
    assert reader.articles() == ["Engine chat: Starting"]
    for alarming in ("No data", "unknown", "Stale or missing"):
        assert alarming not in reader.texts
    shown = {attributes.get("class") for tag, attributes in reader.tags if tag in ("h1", "article")}
    assert shown == {"quiet", "card quiet"}
    assert "Starting: first verdict in a few seconds" in read(None).texts


def test_an_engine_that_cannot_be_read_is_told_of_once() -> None:
    html = page(scenes.no_data())
    assert html.count("http://10.0.0.5:8000 refuses: start it") == 1
    assert "libnvidia-ml.so.1 not found" in html


def test_a_calm_card_over_the_alert_line_says_that_it_pages() -> None:
    texts = read(scenes.full_but_calm()).texts
    assert "Over the 90\N{NO-BREAK SPACE}% alert line" in texts
    assert any("nobody waits for room yet" in piece for piece in texts)
    assert "Over the 90\N{NO-BREAK SPACE}% alert line" not in read(scenes.healthy()).texts


@pytest.mark.parametrize(
    ("classes", "sentence"),
    [
        (["healthy", "healthy"], "Both engines are healthy"),
        (["idle", "idle", "idle"], "All 3 engines are idle"),
        (["healthy", "idle"], "No engine is pinched: 1 healthy, 1 idle"),
        (["stalled", "idle"], "1 of 2 engines pinched"),
        (["unknown", "idle"], "1 of 2 engines can't be judged"),
        (["idle"], "The engine is idle"),
        (["unknown"], "The engine can't be judged"),
        (["sleeping"], "The engine is asleep"),
    ],
)
def test_the_headline_fits_any_mixture(classes: list[str], sentence: str) -> None:
    names = [f"e{number}" for number in range(len(classes))]
    snapshot = scenes.Snapshot(at=5.0, engines=tuple(scenes.engine(name, 5.0) for name in names))
    verdicts = [scenes.settled(name, 5.0, Bottleneck(one), "why") for name, one in zip(names, classes, strict=True)]
    assert sentence in read(scenes.scene([snapshot], verdicts)).texts


def test_a_probe_without_figures_says_why_and_one_over_the_slo_of_its_engine_is_red() -> None:
    snapshot = scenes.Snapshot(
        at=5.0,
        engines=(scenes.engine("chat", 5.0),),
        probes=(
            scenes.ProbeReading(target="late", placement=scenes.Placement.LOCAL, at=4.0, engine="chat",
                                outcome=scenes.ProbeOutcome.OK, detail=LATE),
            scenes.ProbeReading(target="slow", placement=scenes.Placement.LOCAL, at=4.0, engine="chat",
                                outcome=scenes.ProbeOutcome.OK, ttft_seconds=2.5, tpot_seconds=0.02),
            scenes.ProbeReading(target="api", placement=scenes.Placement.HOSTED, at=4.0,
                                outcome=scenes.ProbeOutcome.OK, ttft_seconds=9.0, tpot_seconds=0.02),
        ),
    )  # fmt: skip
    reader = read(scenes.scene([snapshot]))
    assert LATE in reader.texts
    assert "TTFT over the SLO of 2.00\N{NO-BREAK SPACE}s" in reader.texts
    assert [attributes.get("class") for tag, attributes in reader.tags if tag == "td"].count("over") == 1


def test_a_probe_shows_its_phases_on_one_scale_with_their_figures_as_the_legend() -> None:
    reader = read(scenes.full_node())
    bars = [
        (label.partition(": ")[0], label)
        for tag, attributes in reader.tags
        if tag == "svg" and (label := attributes.get("aria-label") or "").startswith("Phases of ")
    ]
    assert [who for who, _ in bars] == ["Phases of chat-local", "Phases of backup", "Phases of openai"]
    assert "headers 3.39\N{NO-BREAK SPACE}s, first token 20.0\N{NO-BREAK SPACE}ms" in bars[0][1]
    parts = [a for tag, a in reader.tags if tag == "rect" and (a.get("class") or "").startswith("p-")]
    ends = [float((a["x"] or "").rstrip("%")) + float((a["width"] or "").rstrip("%")) for a in parts]
    assert max(ends) == pytest.approx(100, abs=0.1), "the longest fills the line"
    theirs = [end for end, a in zip(ends, parts, strict=True) if a["class"] == "p-generation"][-1]
    assert theirs == pytest.approx(100 * 1.0003 / 4.6802, abs=0.1)
    assert {"reused connection", "reasoning summary", "107\N{NO-BREAK SPACE}chars/s"} <= set(reader.texts)


def test_ours_is_held_against_theirs_in_a_sentence_with_its_figures() -> None:
    texts = read(scenes.full_node()).texts
    assert any(text.startswith("chat-local takes 9.0 times as long as openai to the first token") for text in texts)
    ratios = "Ours over theirs: TTFT 8.97, first content 8.97, TPOT 3.42, characters/s 0.30"
    assert any(text.startswith(ratios) for text in texts), texts
    assert not any("can't be compared" in text for text in read(scenes.hostile()).texts)


def test_the_axis_of_a_sparkline_goes_back_as_far_as_there_is_something() -> None:
    verdict = scenes.healthy().verdicts["chat"]
    assert "1\N{NO-BREAK SPACE}min ago" in read(scenes.scene(scenes.fast()[:30], [verdict])).texts
    assert "5\N{NO-BREAK SPACE}min ago" in read(scenes.healthy()).texts


def test_page_and_dashboards_call_and_colour_a_class_alike() -> None:
    assert list(CLASSES.values()) == [(CLASS_WORDS[one], CLASS_COLOURS[one]) for one in Bottleneck]
    css = (files("pinchpoint.outputs.web") / "static" / "page.css").read_text()
    assert dict(re.findall(r"\.c-(\w+) \{ --class: (#\w+); \}", css)) == {
        str(one): colour for one, colour in CLASS_COLOURS.items()
    }


def test_simulated_data_says_so_on_the_page() -> None:
    assert "simulated" in read(scenes.full_node()).texts
    assert "simulated" not in read(scenes.healthy()).texts


def test_a_failed_reload_and_missing_gpus_are_told() -> None:
    scene = scenes.full_node()
    texts = read(replace(scene, self_report=replace(scene.self_report, config_last_reload_successful=False))).texts
    assert any("last reload failed" in piece for piece in texts)
    assert "7 of 8 expected GPUs are visible." in texts


def test_every_class_reason_and_throttle_has_words() -> None:
    assert set(SEVERITIES) == set(CLASS_WORDS) == set(Bottleneck)
    for words in (*map(reason_in_words, Reason), *map(throttle_in_words, ThrottleReason)):
        assert words
        assert "_" not in words


@given(st.lists(st.none() | st.floats(-1e9, 1e9), min_size=2, max_size=60))
def test_a_sparkline_stays_inside_its_picture_whatever_the_values(values: list[float | None]) -> None:
    drawn = spark("x", ("kv", values), top=1.0)
    heights = [float(y) for y in re.findall(r"\d+,(-?[\d.]+)", drawn)]
    assert all(1.0 <= y <= 28.0 for y in heights)
    assert bool(heights) == any(value is not None for value in values)


def test_a_gap_in_the_values_is_a_gap_in_the_line() -> None:
    assert spark("x", ("kv", [0.1, 0.2, None, 0.4, 0.5]), top=1.0).count("<polyline") == 2


def test_a_bar_of_more_than_everything_is_full() -> None:
    assert 'width="100.0%"' in bar(1.7, "x")


def fleet(engines: int) -> Scene:
    snapshot = Snapshot(at=300.0, engines=tuple(scenes.engine(f"engine {n} & co", 300.0) for n in range(engines)))
    verdicts = [
        scenes.settled(
            reading.engine, 300.0, Bottleneck.KV_CAPACITY if number == engines - 1 else Bottleneck.HEALTHY, "so"
        )
        for number, reading in enumerate(snapshot.engines)
    ]
    return scenes.scene([snapshot], verdicts)


def test_of_500_engines_the_worst_have_a_card_and_the_others_a_way_to_theirs() -> None:
    shown = fleet(500)
    reader = read(shown)
    assert reader.open == []
    assert reader.articles()[0] == "Engine engine 499 & co: Out of KV cache"
    assert len(reader.articles()) == CARDS
    links = [attrs["href"] or "" for tag, attrs in reader.tags if tag == "a" and attrs["href"].startswith("?engine=")]
    assert len(links) == len(set(links)) == 500 - CARDS
    name = unquote(links[0].removeprefix("?engine="))
    alone = Reader(page(shown, engine=name))
    assert alone.articles() == [f"Engine {name}: Healthy"]
    assert len(page(shown).encode()) < 1_000_000


def test_the_tally_of_a_fleet_leads_to_the_first_of_each_class() -> None:
    reader = read(fleet(60))
    ids = {attrs["id"] for _, attrs in reader.tags if "id" in attrs}
    targets = [attrs["href"][1:] for tag, attrs in reader.tags if tag == "a" and attrs["href"].startswith("#")]
    assert len(targets) == 2
    assert set(targets) <= ids
    assert {"1", "59"} <= set(reader.texts)


def test_an_engine_that_is_not_there_has_a_page_that_says_so() -> None:
    reader = Reader(page(fleet(3), engine="<gone>"))
    assert "No engine of this name" in reader.texts
    assert reader.articles() == []
