"""pinchpoint probe: all targets at once, side by side, in words and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from pinchpoint.cli import app
from pinchpoint.cli.probe import _chosen
from pinchpoint.cli.probe_bars import LOOKS, segments
from pinchpoint.cli.probe_figures import latency
from pinchpoint.config import Settings
from pinchpoint.snapshot import PROBE_PHASES, Placement
from pinchpoint.sources.probe.lateness import LoopWatch
from tests.fakes.openai_server import FakeOpenAI, FakeRequest, Wire, replying, streaming
from tests.fakes.own_thread import in_a_thread

MODEL = "Qwen/Qwen2.5-14B-Instruct"


@pytest.fixture(autouse=True)
def _no_ledger_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def _every_stamp_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server shares the interpreter with the command, so its loop is late whenever the machine is busy."""
    monkeypatch.setattr(LoopWatch, "lateness", lambda *_: 0.0)


@pytest.fixture
def slow() -> Iterator[FakeOpenAI]:
    with in_a_thread(FakeOpenAI(streaming(tokens=24, ttft=1.2, tpot=0.01))) as server:
        yield server


@pytest.fixture
def fast() -> Iterator[FakeOpenAI]:
    with in_a_thread(FakeOpenAI(streaming(tokens=24, ttft=0.02, tpot=0.01))) as server:
        yield server


def configured(folder: Path, *targets: dict[str, Any]) -> list[str]:
    file = folder / "pinchpoint.yaml"
    file.write_text(json.dumps({"probes": {"targets": list(targets)}}))
    return ["--config.file", str(file)]


def local(server: FakeOpenAI, **more: Any) -> dict[str, Any]:
    return {"name": "chat", "url": server.url, "model": MODEL, **more}


def hosted(server: FakeOpenAI, **more: Any) -> dict[str, Any]:
    return {"name": "api", "url": server.url, "model": "qwen2.5-14b-instruct", "placement": "hosted", **more}


def probe(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["probe", *arguments], catch_exceptions=False)


def test_without_a_name_all_targets_are_asked_and_ours_is_held_against_theirs(
    tmp_path: Path, slow: FakeOpenAI, fast: FakeOpenAI
) -> None:
    config = configured(tmp_path, hosted(fast), local(slow))
    result = probe(*config, "--json")
    assert result.exit_code == 0, result.output
    ours, theirs = json.loads(result.stdout)
    assert (ours["target"], theirs["target"]) == ("chat", "api"), "local before hosted"
    assert (ours["model"], ours["connection"], ours["token_source"]) == (MODEL, "new", "usage")
    assert ours["characters_per_second"] > 0
    assert ours["compared"]["hosted"] == ["api"]
    times = ours["ttft_seconds"] / theirs["ttft_seconds"]
    assert ours["compared"]["ratios"]["ttft"] == pytest.approx(times)
    assert times > 3
    assert "times as long as api to the first token" in ours["compared"]["meaning"]
    assert "compared" not in theirs
    assert "repeated" not in ours
    (asked,), (also_asked,) = slow.requests, fast.requests
    assert abs(asked.at_ns - also_asked.at_ns) < 0.5e9, "at once"


def test_people_see_them_side_by_side_with_phases_on_one_scale_and_what_it_means(
    tmp_path: Path, slow: FakeOpenAI, fast: FakeOpenAI
) -> None:
    result = probe(*configured(tmp_path, local(slow), hosted(fast)))
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["chat", "api", "ours", "/", "theirs"]
    assert lines[1].split() == ["local", "hosted"]
    assert [line.split()[0] for line in lines[2:11]] == [
        "outcome", "TTFT", "TTFC", "TPOT", "characters/s", "tokens", "connection", "stream", "in",
    ]  # fmt: skip
    ours, theirs = (lines[lines.index(name) + 1] for name in ("chat", "api"))
    assert len(ours) == 80, "the longest fills the line"
    assert len(theirs) < 40
    assert set(ours) | set(theirs) <= set("rclshtg")
    assert any("c connect " in line and "t first token " in line for line in lines), "the figures are the legend"
    assert "the infrastructure is slow" in result.stdout
    assert "--repeat 5 gives medians" in result.stdout
    assert "\x1b" not in result.stdout, "no terminal, no colour"
    assert "a probe may cost up to" in result.stderr


def test_repeated_probes_give_medians_and_their_spread_on_one_connection(tmp_path: Path, fast: FakeOpenAI) -> None:
    config = configured(tmp_path, local(fast))
    (told,) = json.loads(probe(*config, "--repeat", "4", "--json").stdout)
    assert len(fast.requests) == 4
    assert len({request.connection for request in fast.requests}) == 1
    repeated = told["repeated"]
    assert (repeated["probes"], repeated["outcomes"]) == (4, {"ok": 4})
    for name in ("ttft_seconds", "tpot_seconds", "duration_seconds", "characters_per_second"):
        assert 0 < repeated[name]["min"] <= repeated[name]["median"] <= repeated[name]["max"]
    text = probe(*config, "--repeat", "4").stdout
    assert "new, reused" in text
    assert "–" in text.split("TTFC")[0].split("TTFT")[1], "the spread stands below the median"
    assert "glimpse" not in text


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_tables_and_bars_fit_any_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: FakeOpenAI, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    targets = [local(fast, name=f"chat-{number}-in-the-long-run") for number in range(4)]
    text = probe(*configured(tmp_path, *targets), "--repeat", "2").stdout
    assert max(map(len, text.splitlines())) <= columns
    assert all(f"\nchat-{number}-in-the-long-run\n" in text for number in range(4)), "above its bar"


def test_a_failure_says_what_to_do_once_and_is_bad_news(tmp_path: Path, fast: FakeOpenAI) -> None:
    refused = replying(401, {"error": {"message": "no such key", "code": "invalid_api_key"}})
    with in_a_thread(FakeOpenAI(refused)) as closed:
        result = probe(*configured(tmp_path, local(fast), local(closed, name="shut")), "--repeat", "3")
    assert result.exit_code == 1
    assert [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("outcome")] == [["ok", "auth"]]
    assert result.stdout.count("shut: HTTP 401: no such key. ") == 1


def test_outcomes_that_changed_are_counted_and_a_target_that_fails_is_not_compared(tmp_path: Path) -> None:
    answers = [replying(503, "busy", "text/plain"), streaming(), streaming()]

    async def answer(request: FakeRequest, wire: Wire) -> None:
        await answers.pop(0)(request, wire)

    with in_a_thread(FakeOpenAI(answer)) as server:
        config = configured(tmp_path, local(server), hosted(server, name="gone", url="http://127.0.0.1:1"))
        result = probe(*config, "--repeat", "3", "--json")
    ours, theirs = json.loads(result.stdout)
    assert result.exit_code == 1
    assert ours["repeated"]["outcomes"] == {"overloaded": 1, "ok": 2}
    assert ours["outcome"] == "ok", "the last one"
    assert ours["compared"]["ratios"] == {}
    assert "can't be compared" in ours["compared"]["meaning"]
    assert theirs["outcome"] == "connect_refused"


def test_a_url_may_be_given_a_preset_and_a_dialect_and_a_preset_needs_no_url() -> None:
    with in_a_thread(FakeOpenAI(streaming())) as server:
        result = probe(server.url, "--preset", "vllm", "--model", MODEL, "--json")
        assert result.exit_code == 0, result.output
        assert server.requests[0].json["model"] == MODEL
        dialect = probe(server.url, "--dialect", "anthropic", "--model", MODEL, "--json")
        assert server.requests[-1].path == "/v1/messages"
        assert dialect.exit_code == 1
    (alone,) = _chosen([], Settings(), {"preset": "taotoken"})
    assert (alone.name, alone.url, alone.placement) == ("taotoken", "https://taotoken.net/api", Placement.HOSTED)


def test_an_unknown_preset_is_wrong_input() -> None:
    wrong = probe("--preset", "taotokn")
    assert wrong.exit_code == 2
    assert "did you mean taotoken" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


def test_nobody_to_ask_is_wrong_input() -> None:
    result = probe()
    assert result.exit_code == 2
    assert "no target is configured; give a URL" in result.stderr


def test_a_hosted_target_beyond_its_cap_is_told_as_not_sent(tmp_path: Path, fast: FakeOpenAI) -> None:
    config = configured(tmp_path, hosted(fast, caps={"tokens_per_day": 1300}), local(fast))
    result = probe(*config, "--repeat", "3")
    assert result.exit_code == 1
    assert "ok, not sent: budget" in " ".join(result.stdout.split())
    assert result.stderr.count("not sent (budget") == 1, "what is refused once is not asked again"
    assert sum(request.json["model"] != MODEL for request in fast.requests) == 1


@given(st.lists(st.floats(0, 1e4), max_size=len(PROBE_PHASES)), st.floats(1e-6, 1e5), st.integers(1, 200))
def test_a_bar_is_as_long_as_its_phases_together(seconds: list[float], scale: float, width: int) -> None:
    phases = dict(zip(PROBE_PHASES, seconds, strict=False))
    drawn = segments(phases, scale, width)
    whole = sum(seconds) / scale * width
    assert abs(sum(segment.cells for segment in drawn) - whole) <= 0.5 + whole * 1e-9
    for segment in drawn:
        assert abs(segment.cells - phases[segment.phase] / scale * width) <= 1 + whole * 1e-9
    assert [segment.phase for segment in drawn] == [p for p in PROBE_PHASES if p in {s.phase for s in drawn}]


def test_every_phase_has_a_letter_and_a_colour_of_its_own() -> None:
    assert set(LOOKS) == set(PROBE_PHASES)
    assert len({letter for letter, _ in LOOKS.values()}) == len({colour for _, colour in LOOKS.values()}) == len(LOOKS)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "–"), (0.000_12, "0.12 ms"), (0.0421, "42.1 ms"), (0.24, "240 ms"), (0.9999, "1.00 s"), (12.34, "12.3 s")],
)
def test_a_latency_has_three_digits(seconds: float | None, words: str) -> None:
    assert latency(seconds) == words
