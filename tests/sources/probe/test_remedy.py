"""What to do, told by the case: where the target is, what was sent there and what came back."""

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.case import Case, proxy_variables
from pinchpoint.sources.probe.cause import Cause
from pinchpoint.sources.probe.error_body import error_facts
from pinchpoint.sources.probe.judgement import Judgement
from pinchpoint.sources.probe.remedy import REMEDY, remedy
from tests.fakes.openai_server import FakeOpenAI, replying
from tests.sources.probe.conftest import MakeProber

LOCAL = {"url": "http://127.0.0.1:8000"}
GATEWAY = {"url": "https://llm.corp.example"}
HOSTED = {"url": "https://taotoken.net/api", "preset": "taotoken", "model": "m"}


def case(
    outcome: str, target: dict[str, Any], *, key: str = "", variables: tuple[str, ...] = (), **judged: Any
) -> Case:
    settings = ProbeTargetSettings.model_validate({"name": "t"} | target)
    judgement = Judgement(outcome=ProbeOutcome(outcome), **judged)
    return Case(target=settings, judgement=judgement, key=key, model=settings.model, proxy_variables=variables)


CASES = [
    (case("dns", HOSTED, variables=("HTTPS_PROXY",)), "HTTPS_PROXY is set, which probes don't follow"),
    (case("connect_timeout", HOSTED, variables=("all_proxy", "https_proxy")), "all_proxy and https_proxy is set"),
    (case("connect_timeout", HOSTED), "wants a proxy"),
    (case("connect_refused", LOCAL, variables=("HTTP_PROXY",)), "Nothing listens at 127.0.0.1:8000"),
    (case("connect_refused", GATEWAY), "Nothing listens at llm.corp.example:443"),
    (case("dns", {"url": "http://vllm:8000"}), "containers and pods know names"),
    (case("dns", GATEWAY), "this host's resolver"),
    (case("tls", GATEWAY, message="TLS fails with llm:443 (certificate has expired)"), "out of date"),
    (case("tls", GATEWAY, message="(Hostname mismatch, certificate is not valid for 'x'.)"), "another name"),
    (case("tls", GATEWAY, message="(self-signed certificate)"), "SSL_CERT_FILE"),
    (case("tls", GATEWAY, message="(unable to get local issuer certificate)"), "SSL_CERT_FILE"),
    (case("tls", GATEWAY, message="(wrong version number)"), "begin url with http://"),
    (case("proxy", HOSTED | {"proxy": "http://proxy:3128"}), "The target's proxy does not answer"),
    (case("proxy", HOSTED | {"proxy": "http://proxy:3128"}, status=407), "The proxy wants a login"),
    (case("proxy", HOSTED | {"proxy": "http://proxy:3128"}, message="the proxy answers 407"), "wants a login"),
    (case("proxy", LOCAL | {"proxy": "http://proxy:3128"}), "remove the target's proxy"),
    (case("proxy", GATEWAY, status=502), "finds no healthy engine"),
    (case("auth", LOCAL, cause=Cause.KEY_UNREADABLE), "api_key_file"),
    (case("auth", HOSTED, key="sk-0000", status=401), "provider's console"),
    (case("auth", {"url": "https://a.example", "api_key_variable": "A_KEY"}, status=401), "A_KEY"),
    (case("model_not_found", LOCAL, cause=Cause.NO_MODEL_LIST), "lists no model"),
    (case("invalid_response", LOCAL, cause=Cause.HTML_PAGE, status=200), "Another program serves web pages at 127.0"),
    (case("invalid_response", LOCAL, cause=Cause.NO_HTTP), "write https://"),
    (case("truncated", LOCAL, message="the connection broke; 0 chunks of text had come"), "before the first text"),
    (case("truncated", LOCAL, message="the connection broke; 5 chunks of text had come"), "a crash, a restart"),
    (case("not_streamed", LOCAL, cause=Cause.BUFFERED), "proxy_buffering off"),
    (case("empty_output", HOSTED, cause=Cause.REASONING_BUDGET), "max_tokens 1024"),
    (case("empty_output", HOSTED, cause=Cause.TOOL_ONLY), "called a tool"),
    (case("empty_output", HOSTED, cause=Cause.REFUSAL), "refused a harmless prompt"),
    (case("first_token_timeout", HOSTED), "reasoning_effort"),
    (case("first_token_timeout", LOCAL), "engine's queue"),
    (case("engine_dead", LOCAL), "restart it"),
    (case("engine_dead", HOSTED), "status page"),
    (case("ok", LOCAL), ""),
]


@pytest.mark.parametrize(("seen", "words"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_failure_names_what_to_do(seen: Case, words: str):
    assert words in remedy(seen)


def test_every_outcome_has_a_remedy_of_one_line_or_needs_none():
    assert set(REMEDY) == set(ProbeOutcome)
    for outcome, line in REMEDY.items():
        assert bool(line) is (outcome is not ProbeOutcome.OK)


@given(
    outcome=st.sampled_from(ProbeOutcome),
    target=st.sampled_from([LOCAL, GATEWAY, HOSTED, HOSTED | {"proxy": "http://proxy:3128"}]),
    key=st.text(min_size=8, max_size=40).map("Zk9-{}".format),
    said=st.text(max_size=300),
    location=st.text(max_size=300),
    status=st.none() | st.integers(200, 599),
    cause=st.none() | st.sampled_from(Cause),
    wait=st.none() | st.floats(0, 3600),
)
def test_a_remedy_is_one_short_line_without_the_key(
    outcome: ProbeOutcome,
    target: dict[str, Any],
    key: str,
    said: str,
    location: str,
    status: int | None,
    cause: Cause | None,
    wait: float | None,
):
    facts = error_facts({"error": {"message": f"Valid aliases: {key}{said}", "param": said}})
    line = remedy(
        case(
            outcome,
            target,
            key=key,
            facts=facts,
            location=location and f"https://x.example/{key}/{location}",
            status=status,
            cause=cause,
            retry_after_seconds=wait,
        )
    )
    assert bool(line) is (outcome is not ProbeOutcome.OK)
    assert len(line) <= 240
    assert line.isprintable()
    assert key not in line


@pytest.mark.parametrize(
    ("url", "environment", "names"),
    [
        ("https://a.example", {"HTTPS_PROXY": "http://p:1"}, ("HTTPS_PROXY",)),
        ("https://a.example", {"https_proxy": "http://p:1", "ALL_PROXY": "x"}, ("ALL_PROXY", "https_proxy")),
        ("http://a.example", {"HTTPS_PROXY": "http://p:1"}, ()),
        ("https://a.example", {"HTTPS_PROXY": ""}, ()),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example, b.test"}, ()),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ()),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*", "no_proxy": ""}, ("HTTPS_PROXY",)),
        ("https://notb.test", {"HTTPS_PROXY": "http://p:1", "no_proxy": "b.test"}, ("HTTPS_PROXY",)),
        ("https://a.example", {}, ()),
    ],
)
def test_the_proxy_variables_that_hold_for_a_url_are_named(url: str, environment: dict[str, str], names: tuple[str]):
    assert proxy_variables(url, environment) == names


async def test_a_hosted_api_out_of_reach_tells_of_the_proxy_variable_that_is_set(
    prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://user:s3cret@proxy:3128")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        reading = await prober_of(url, placement="hosted").probe()
    assert reading.outcome is ProbeOutcome.CONNECT_REFUSED
    assert "HTTP_PROXY is set" in reading.remedy
    assert "s3cret" not in str(reading)


async def test_a_probe_that_is_turned_away_knows_how_long_to_wait(prober_of: MakeProber):
    async with FakeOpenAI(replying(429, {"error": {"message": "slow down"}}, retry_after="7")) as server:
        reading = await prober_of(server.url).probe()
    assert reading.retry_after_seconds == 7
    assert "is to wait 7 s" in reading.remedy


async def test_a_login_token_in_place_of_a_key_is_named_and_not_shown(prober_of: MakeProber):
    token = "sk-ant-oat01-" + "Zk9" * 20
    said = {"error": {"message": f"invalid x-api-key {token}", "type": "authentication_error"}}
    async with FakeOpenAI(replying(401, said)) as server:
        reading = await prober_of(server.url, api_key=token).probe()
    assert "login token of Claude Code" in reading.remedy
    assert "Zk9" not in str(reading)
