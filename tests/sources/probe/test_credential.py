"""What keys and names of models tell by their looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.credential import PROVIDERS, key_flaw, login_token, model_flaw, provider_at

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIwMDAwIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("key", "host", "words"),
    [
        ("", "api.openai.com", "No key was sent"),
        ("sk-0000 \n", "api.openai.com", "blanks or characters"),
        (" sk-0000", "api.openai.com", "blanks or characters"),
        ("sk-0000 sk-0001", "api.openai.com", "blanks or characters"),
        ("sk-“0000”", "api.openai.com", "blanks or characters"),
        ("Bearer sk-0000", "api.openai.com", "the word Bearer"),
        ('"sk-0000"', "api.openai.com", "quotes"),
        ("sk-0000,", "api.openai.com", "quotes or a comma"),
        ("YOUR_API_KEY", "taotoken.net", "placeholder"),
        ("sk-xxxxxxxx", "api.openai.com", "placeholder"),
        ("${TAOTOKEN_API_KEY}", "taotoken.net", "placeholder"),
        ("<key>", "taotoken.net", "placeholder"),
        ("EMPTY", "10.0.0.5", "placeholder"),
        ("sk-ant-oat01-00000000", "api.anthropic.com", "login token of Claude Code"),
        ("sk-ant-sid01-00000000", "api.anthropic.com", "session of claude.ai"),
        (JWT, "api.openai.com", "auth.json"),
        ("sk-ant-admin01-0000", "api.anthropic.com", "admin key"),
        ("sk-ant-api03-0000", "api.openai.com", "one of Anthropic's, the URL is api.openai.com"),
        ("sk-proj-0000", "taotoken.net", "one of OpenAI's, the URL is taotoken.net"),
        ("AIza0000", "10.0.0.5", "one of Google's"),
    ],
)
def test_a_key_that_cannot_work_is_told_by_its_looks(key: str, host: str, words: str):
    assert words in str(key_flaw(key, host))


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("sk-0000000000000000", "taotoken.net"),  # everybody's
        ("sk-ant-api03-0000", "api.anthropic.com"),
        ("sk-proj-0000", "API.OpenAI.com"),
        ("gsk_0000", "api.groq.com"),
        ("0123456789abcdef", "10.0.0.5"),
        ("your-moms-spaghetti", "10.0.0.5"),
    ],
)
def test_a_key_that_looks_right_is_left_alone(key: str, host: str):
    assert key_flaw(key, host) is None


@pytest.mark.parametrize(
    ("model", "host", "words"),
    [
        ("claude-sonnet-4-6", "api.openai.com", "a model of Anthropic, the URL is OpenAI's"),
        ("gpt-4o-mini", "api.deepseek.com", "a model of OpenAI, the URL is DeepSeek's"),
        ("gemini-2.5-pro", "api.anthropic.com", "a model of Google"),
        ("gpt-4o-mini", "openrouter.ai", "VENDOR/MODEL"),
    ],
)
def test_a_model_of_another_provider_is_told_by_its_name(model: str, host: str, words: str):
    assert words in str(model_flaw(model, host))


@pytest.mark.parametrize(
    ("model", "host"),
    [
        ("gpt-4o-mini", "taotoken.net"),  # an aggregator has everybody's
        ("gpt-oss-120b", "api.groq.com"),
        ("claude-sonnet-4-6", "10.0.0.5"),
        ("deepseek-r1", "dashscope.aliyuncs.com"),
        ("openai/gpt-4o-mini", "openrouter.ai"),
        ("gpt-9", "api.openai.com"),
    ],
)
def test_a_model_that_may_be_there_is_left_alone(model: str, host: str):
    assert model_flaw(model, host) is None


def test_a_host_that_only_ends_like_a_providers_is_not_the_providers():
    assert provider_at("api.openai.com") is not None
    assert provider_at("notopenai.com") is None
    assert provider_at("openai.com.evil.example") is None


def test_no_key_begins_as_two_providers_keys_do():
    begins = [begin for provider in PROVIDERS for begin in provider.keys]
    assert not [(a, b) for a in begins for b in begins if a != b and a.startswith(b)]


@given(
    begin=st.sampled_from(["", "sk-", "sk-ant-oat01-", "sk-or-v1-", "Bearer ", '"', "eyJ"]), body=st.text(max_size=80)
)
def test_no_part_of_a_key_is_in_what_is_said_of_it(begin: str, body: str):
    said = f"{key_flaw(begin + 'Z9' + body, 'api.openai.com')} {login_token(begin + 'Z9' + body)}"
    assert "Z9" not in said
