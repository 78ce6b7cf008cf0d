"""Presets: a name and a key are a target, what is written beside them wins, and what contradicts them is named."""

from typing import Any

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import Placement, ProbeOutcome
from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.dialects import DIALECTS, DialectName
from pinchpoint.sources.probe.presets import PRESETS, preset_at
from tests.fakes.openai_server import FakeOpenAI, streaming
from tests.sources.probe.conftest import MakeProber


def target(**values: Any) -> ProbeTargetSettings:
    return ProbeTargetSettings.model_validate(values)


def test_taotoken_and_a_key_are_a_whole_target():
    taotoken = target(preset="taotoken", api_key="k")
    assert (taotoken.name, taotoken.url, taotoken.model) == ("taotoken", "https://taotoken.net/api", "gpt-4o-mini")
    assert (taotoken.placement, taotoken.dialect) == (Placement.HOSTED, DialectName.OPENAI_CHAT)
    assert taotoken.interval_seconds == 300
    assert taotoken.api_key_variable is None
    assert target(preset="taotoken").api_key_variable == "TAOTOKEN_API_KEY"


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_is_a_target_that_can_be_asked(name: str):
    account = {"url": "https://mine.openai.azure.com"} if name == "azure" else {}
    asked = target(preset=name, model="m", **account)
    dialect = DIALECTS[asked.dialect](asked.api_version)
    root = dialect.roots(asked.url)[0]
    assert asked.name == asked.preset == name
    assert dialect.request_url(root, "m").startswith(f"{asked.url}/")
    hosted = asked.placement is Placement.HOSTED
    assert asked.url.startswith("https://" if hosted else "http://127.0.0.1:")
    assert (asked.interval_seconds == 300) is hosted
    assert (asked.api_key_variable is not None) is (hosted or name == "vllm")


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in PRESETS.items() if len(p.urls) > 1])
def test_another_dialect_of_a_preset_is_at_its_own_url(name: str, preset: Any):
    for dialect, url in preset.urls.items():
        assert target(preset=name, dialect=dialect, model="m").url == url.rstrip("/")


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.placement is Placement.HOSTED])
def test_a_providers_url_is_recognised_and_nobody_spends_by_forgetting_that_it_is_hosted(name: str):
    for dialect, url in PRESETS[name].urls.items():
        known = target(name="t", url=url or "https://mine.openai.azure.com/openai/v1", model="m")
        assert (known.preset, known.placement, known.interval_seconds) == (name, Placement.HOSTED, 300)
        assert PRESETS[name].urls[known.dialect] == PRESETS[name].urls[dialect]  # the same, or another at that URL


def test_the_longer_url_tells_the_dialect():
    assert target(url="https://api.deepseek.com/anthropic/v1", model="m").dialect == "anthropic"
    assert target(url="https://api.deepseek.com/v1", model="m").dialect == "openai_chat"
    assert target(url="https://generativelanguage.googleapis.com/v1beta/openai/", model="m").dialect == "openai_chat"
    assert target(url="https://generativelanguage.googleapis.com/v1beta", model="m").dialect == "gemini"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://API.OPENAI.COM/v1", "openai"),
        ("https://me.openai.azure.com/openai/deployments/d", "azure"),
        ("https://me.services.ai.azure.com", "azure"),
        ("https://openai.com.example.org", None),
        ("https://api.openai.com.evil.example/v1", None),
        ("http://127.0.0.1:8000", None),
        ("http://[bad", None),
    ],
)
def test_a_host_is_recognised_as_a_whole(url: str, name: str | None):
    assert preset_at(url) == name


def test_what_is_written_wins():
    mine = target(
        preset="openai",
        name="mine",
        model="gpt-x",
        url="https://gateway.example/openai",
        interval_seconds=600,
        parameters={"token_field": "max_tokens", "temperature": 0},
        dialect="openai_responses",
    )
    assert (mine.name, mine.model, mine.url) == ("mine", "gpt-x", "https://gateway.example/openai")
    assert (mine.interval_seconds, mine.dialect, mine.placement) == (600, "openai_responses", "hosted")
    assert (mine.parameters.token_field, mine.parameters.temperature) == ("max_tokens", 0)


def test_quirks_of_a_preset_stay_where_nothing_is_written():
    assert target(preset="openai", model="m", parameters={"temperature": 0}).parameters.token_field == (
        "max_completion_tokens"
    )
    assert target(preset="mistral", model="m").parameters.stream_usage is False


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"preset": "taotokn"}, "preset 'taotokn' is unknown; did you mean taotoken? known are: taotoken, openrouter,"),
        ({"preset": 7}, "preset '7' is unknown"),
        (
            {"preset": "taotoken", "url": "https://api.openai.com/v1"},
            "preset taotoken and url disagree: the url is openai's; keep one of them",
        ),
        (
            {"preset": "openai", "placement": "local", "model": "m"},
            "placement local and openai disagree: openai is a hosted API, which bills; leave placement out",
        ),
        ({"url": "https://api.openai.com", "name": "t", "placement": "local"}, "placement local and openai disagree"),
        (
            {"preset": "deepseek", "dialect": "gemini", "model": "m"},
            "preset deepseek and dialect gemini disagree: known there is openai_chat, anthropic; give url too",
        ),
        ({"preset": "azure", "model": "m"}, "preset azure needs url"),
        ({"preset": "openai"}, "a hosted target needs model"),
        ({"preset": "openai", "model": "m", "interval_seconds": 5}, "interval_seconds 5 is too short"),
        ({"preset": "openai", "dialect": "klingon", "model": "m"}, "Input should be 'openai_chat'"),
        ({"preset": "openai", "dialect": ["x"], "model": "m"}, "Input should be 'openai_chat'"),
        (
            {"preset": "openai", "model": "m", "api_version": "2024-10-21"},
            "api_version has no meaning in openai_chat; leave it out",
        ),
        ({"preset": "azure", "url": "https://x.openai.azure.com", "model": "m", "api_version": "a b"}, "pattern"),
        (
            {"preset": "openai", "model": "m", "api_key": "k", "api_key_variable": "K"},
            "api_key and api_key_variable are both set; keep one",
        ),
        ({"preset": "openai", "model": "m", "parameters": "x"}, "parameters"),
    ],
)
def test_a_contradiction_is_named_with_its_remedy(values: dict[str, Any], said: str):
    with pytest.raises(ValidationError) as caught:
        target(**values)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"preset": "taotoken", "url": "https://user:hunter2@api.openai.com"},
        {"preset": "openai", "api_key": "hunter2"},
        {"preset": "nonsense", "api_key": "hunter2"},
    ],
)
def test_a_contradiction_prints_no_secret(values: dict[str, Any]):
    with pytest.raises(ValidationError) as caught:
        target(**values)
    assert "hunter2" not in str(caught.value)


def test_a_target_without_a_preset_stays_as_it_was():
    plain = target(name="t", url="http://127.0.0.1:8000")
    assert (plain.preset, plain.dialect, plain.api_key_variable, plain.placement) == (
        None,
        "openai_chat",
        None,
        "local",
    )


@pytest.mark.parametrize(
    ("values", "variable"),
    [
        ({"preset": "openai", "model": "m"}, "OPENAI_API_KEY"),
        ({"name": "t", "url": "https://api.openai.com/v1", "model": "m"}, "OPENAI_API_KEY"),
        ({"preset": "openai", "model": "m", "url": "https://gateway.example"}, None),
        ({"preset": "openai", "model": "m", "url": "https://gateway.example", "api_key_variable": "MINE"}, "MINE"),
        ({"preset": "vllm", "url": "http://127.0.0.1:8001"}, "VLLM_API_KEY"),
        ({"preset": "vllm", "url": "http://localhost:8001"}, "VLLM_API_KEY"),
        ({"preset": "vllm", "url": "http://vllm.example:8000"}, None),
        ({"name": "t", "url": "http://api.openai.com/v1", "model": "m"}, None),  # in the open
        ({"preset": "openai", "url": "HTTP://api.openai.com/v1", "model": "m"}, None),
        ({"preset": "openai", "model": "m", "api_key_file": "/k"}, None),
    ],
)
def test_a_providers_key_goes_to_the_provider_alone(values: dict[str, Any], variable: str | None):
    assert target(**values).api_key_variable == variable


def test_a_provider_whose_name_ends_with_the_dot_of_the_root_is_hosted_all_the_same():
    assert target(name="t", url="https://api.openai.com./v1", model="m").placement is Placement.HOSTED


async def test_a_key_of_the_environment_is_sent_and_never_printed(
    prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MY_KEY", "sk-hunter2hunter2")
    async with FakeOpenAI(streaming()) as server:
        reading = await prober_of(server.url, api_key_variable="MY_KEY").probe()
    assert reading.outcome is ProbeOutcome.OK
    assert server.requests[0].headers["authorization"] == "Bearer sk-hunter2hunter2"
    assert "hunter2" not in repr(reading)


async def test_a_key_of_the_environment_that_is_not_there_is_no_key(
    prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MY_KEY", raising=False)
    async with FakeOpenAI(streaming()) as server:
        await prober_of(server.url, api_key_variable="MY_KEY").probe()
    assert "authorization" not in server.requests[0].headers


async def test_an_engines_preset_asks_where_the_engine_listens(prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VLLM_API_KEY", "local-key")
    async with FakeOpenAI(streaming()) as server:
        await prober_of(server.url, preset="vllm").probe()
    assert server.requests[0].headers["authorization"] == "Bearer local-key"
    assert server.requests[0].json["ignore_eos"] is True
