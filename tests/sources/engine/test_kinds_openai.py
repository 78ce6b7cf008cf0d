"""A server without metrics: told by its models, its health or its silence, and diagnosed by its probes and its GPUs."""

import json
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from pinchpoint.diagnosis import Bottleneck, Thresholds, diagnose
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    EngineTarget,
    GpuReading,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    Slo,
    Snapshot,
    Window,
)
from pinchpoint.sources.engine import EngineScraper, EngineSettings, EngineSourceSettings
from pinchpoint.sources.engine.place import BUSY_SECONDS, LOOK_AGAIN_SECONDS
from pinchpoint.sources.http import HttpClient
from tests.fakes.pages import Page, serving

JSON = "application/json"
QUICK = EngineSourceSettings(timeout_seconds=0.2)


def models(*entries: dict[str, object]) -> Page:
    return Page(json.dumps({"object": "list", "data": entries}), content_type=JSON)


def target(url: str, kind: str = "openai", **more: object) -> EngineTarget:
    return EngineTarget(engine="chat", url=url, facts=EngineFacts(kind=kind), **more)


async def scraped(url: str, kind: str = "openai", **more: object) -> EngineReading | Absence:
    async with HttpClient() as client:
        return await EngineScraper(target(url, kind, **more), client, QUICK).scrape(lambda: 0.0)


def at(second: float) -> Callable[[], float]:
    return lambda: second


async def test_what_is_said_of_a_watched_engine_may_change_between_two_scrapes():
    async with serving(v1__models=models({"id": "qwen"})) as server, HttpClient() as client:
        engine = EngineScraper(target(server.url), client, QUICK)
        await engine.scrape(at(0))
        engine.target = target(server.url, slo=Slo(ttft_seconds=9), gpus=("3",))
        reading = await engine.scrape(at(5))
    assert isinstance(reading, EngineReading)
    assert (reading.slo.ttft_seconds, reading.gpus) == (9, ("3",))


async def test_a_list_of_models_is_life_and_says_the_model():
    async with serving(v1__models=models({"id": "qwen", "max_model_len": 4096})) as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert (reading.facts.kind, reading.facts.model, reading.facts.max_model_len) == ("openai", "qwen", 4096)
        assert reading.facts.origins == {"model": "models", "max_model_len": "models"}
        (replica,) = reading.replicas
        assert (replica.requests_running, replica.generation_tokens_total, replica.model) == (None, None, "qwen")
        assert reading.unavailable["requests_running"] is Reason.NOT_EXPOSED
        assert "/metrics" not in server.asked


async def test_ollama_says_what_it_has_loaded():
    loaded = {"models": [{"name": "llama3:8b", "context_length": 8192, "size_vram": 5}]}
    pages = {
        "v1__models": models({"id": "llama3:8b", "owned_by": "library"}, {"id": "other", "owned_by": "library"}),
        "api__ps": Page(json.dumps(loaded), content_type=JSON),
    }
    async with serving(**pages) as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert (reading.facts.model, reading.facts.max_model_len) == ("llama3:8b", 8192)
        server.pages["/api/ps"] = Page('{"models":[]}', content_type=JSON)
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert "no model is loaded" in reading.warnings


async def test_a_home_made_server_lives_by_its_health():
    async with serving(health=Page("ok")) as server:
        assert isinstance(await scraped(server.url), EngineReading)


async def test_a_home_made_server_that_is_not_well_is_said_to_be_so_by_its_health():
    async with serving(health=Page("no", status=500)) as server:
        absence = await scraped(server.url)
    assert isinstance(absence, Absence)
    assert "HTTP 500 at /health" in absence.detail


async def test_a_home_made_server_without_any_such_page_lives_by_answering():
    async with serving() as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert any("up means that it answers HTTP" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page(status=401), Reason.UNAUTHORIZED),
        (Page(status=503), Reason.HTTP_STATUS),
        (Page("<html>welcome</html>"), Reason.NOT_EXPOSITION),
        (Page('{"data": {}}', content_type=JSON), Reason.NOT_EXPOSITION),
        (Page("[" * 100_000, content_type=JSON), Reason.NOT_EXPOSITION),
        (Page("x" * 2**21), Reason.TOO_LARGE),
        (Page("{}", seconds=5), Reason.TIMEOUT),
    ],
)
async def test_an_answer_that_is_no_life_says_why(page: Page, reason: Reason):
    async with serving(v1__models=page) as server:
        absence = await scraped(server.url)
        assert isinstance(absence, Absence)
        assert absence.reason is reason


@pytest.mark.parametrize(
    "entry", [{"id": 7}, {"id": "a\nb"}, {"id": "x", "max_model_len": True}, {"id": "x", "max_model_len": -1}, {}]
)
async def test_a_model_that_makes_no_sense_is_unknown(entry: dict[str, object]):
    async with serving(v1__models=models(entry)) as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert reading.facts.max_model_len is None
        assert reading.facts.model in (None, "x")


async def test_one_that_generates_and_answers_nobody_else_is_not_down_for_a_while():
    async with serving(v1__models=models({"id": "m"})) as server, HttpClient() as client:
        scraper = EngineScraper(target(server.url), client, QUICK)
        await scraper.scrape(at(0))
        server.pages["/v1/models"].seconds = 5
        busy = await scraper.scrape(at(BUSY_SECONDS - 1))
        assert isinstance(busy, EngineReading)
        assert busy.at == BUSY_SECONDS - 1  # it is a reading of now
        assert "one request at a time" in busy.warnings[-1]
        dead = await scraper.scrape(at(BUSY_SECONDS + 1))
        assert isinstance(dead, Absence)
        assert dead.reason is Reason.TIMEOUT


async def test_a_server_without_metrics_is_recognised_and_said_to_be_so_once():
    async with serving(v1__models=models({"id": "m"})) as server, HttpClient() as client:
        scraper = EngineScraper(target(server.url, kind=""), client, QUICK)
        with capture_logs() as logs:
            for second in range(0, int(3 * LOOK_AGAIN_SECONDS), 60):
                reading = await scraper.scrape(at(second))
                assert isinstance(reading, EngineReading)
                assert reading.facts.kind == "openai"
        assert [log["event"] for log in logs] == ["engine has no metrics, it is seen by its probes and GPUs alone"]
        assert server.asked.count("/metrics") == 3  # looked for again, now and then


async def test_metrics_that_are_switched_on_later_are_found():
    async with serving(v1__models=models({"id": "m"})) as server, HttpClient() as client:
        scraper = EngineScraper(target(server.url, kind=""), client, QUICK)
        await scraper.scrape(at(0))
        server.pages["/metrics"] = Page("sglang:num_running_reqs 3\n")
        await scraper.scrape(at(LOOK_AGAIN_SECONDS + 1))
        reading = await scraper.scrape(at(LOOK_AGAIN_SECONDS + 2))
        assert isinstance(reading, EngineReading)
        assert reading.replicas[0].requests_running == 3


async def test_a_stranger_with_neither_metrics_nor_models_is_down_with_the_cause():
    async with serving(health=Page("ok")) as server:
        absence = await scraped(server.url, kind="")
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.HTTP_STATUS
        assert "404" in absence.detail


async def test_models_behind_a_key_do_not_pass_for_a_server_without_metrics():
    async with serving(v1__models=Page(status=401)) as server:
        absence = await scraped(server.url, kind="")
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.UNAUTHORIZED
        assert "no metrics (HTTP 404)" in absence.detail


async def test_a_path_that_somebody_set_is_expected_to_be_right():
    async with serving(v1__models=models({"id": "m"})) as server:
        absence = await scraped(server.url, kind="", metrics_path="/own/metrics")
        assert isinstance(absence, Absence)
        assert server.asked[0] == "/own/metrics"


async def test_a_named_kind_without_metrics_says_how_to_switch_them_on():
    async with serving(v1__models=models({"id": "m"})) as server:
        absence = await scraped(server.url, kind="sglang")
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.METRICS_MISSING
        assert "--enable-metrics" in absence.detail


async def test_a_llama_server_without_its_metrics_says_so_or_is_seen_without_them():
    async with serving(metrics=Page(status=501), v1__models=models({"id": "m"})) as server:
        absence = await scraped(server.url, kind="llamacpp")
        assert isinstance(absence, Absence)
        assert "start it with --metrics" in absence.detail
        reading = await scraped(server.url, kind="")
        assert isinstance(reading, EngineReading)
        assert reading.facts.kind == "openai"


async def test_json_everywhere_is_said_to_be_no_exposition():
    async with serving(metrics=Page("[]", content_type=JSON)) as server:
        absence = await scraped(server.url, kind="")
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.NOT_EXPOSITION
        assert "/metrics and /prometheus/metrics" in absence.detail


async def test_an_engine_that_was_configured_so_is_diagnosed_by_its_probes_and_gpus():
    async with serving(v1__models=models({"id": "m"})) as server, HttpClient() as client:
        settings = EngineSettings(name="chat", url=server.url, kind="openai", gpus=["0"])
        scraper = EngineScraper(settings.target(), client, QUICK)
        window = Window(300.0)
        for second in range(0, 150, 5):
            reading = await scraper.scrape(at(second))
            assert isinstance(reading, EngineReading)
            late = ProbeReading(
                target="chat",
                engine="chat",
                placement=Placement.LOCAL,
                at=float(second // 30 * 30),
                outcome=ProbeOutcome.OK,
                ttft_seconds=6.0,
                tpot_seconds=0.02,
                duration_seconds=6.5,
            )
            gpu = GpuReading(gpu="0", uuid="GPU-0", at=float(second), utilization_ratio=0.3)
            window = window.append(Snapshot(at=float(second), engines=(reading,), probes=(late,), gpus=(gpu,)))
        verdict = diagnose(window, "chat", 145.0, Thresholds())
        assert verdict.bottleneck is Bottleneck.SCHEDULER
        assert verdict.confidence_ratio <= 0.6
        assert {"requests_running", "requests_waiting"} <= set(verdict.missing)
        assert verdict.advice[0].action == "batch_requests"
