"""Which of the three is wrong: every case against an API on a real socket."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pinchpoint.snapshot import Placement
from pinchpoint.sources.probe.check import Check, Part, State, Triple, check, check_target
from pinchpoint.sources.probe.check.asking import target_of
from pinchpoint.sources.probe.check.look import known_url, near_url
from pinchpoint.sources.probe.dialects import DialectName
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from tests.fakes.certificates import Authority
from tests.fakes.openai_api import api
from tests.fakes.openai_server import FakeOpenAI, replying

KEY = "sk-canary-0123456789abcdef"
GOOD = Triple(name="it", url="", key=KEY, model="gpt-4o-mini")


async def checked(triple: Triple, *, free: bool = False, **environment: str) -> Check:
    found = await check(triple, free=free, environment=environment)
    assert KEY not in repr(found)
    return found


def states(found: Check) -> dict[str, State]:
    return {step.name: step.state for step in found.steps}


def wrong(found: Check) -> tuple[Part, str]:
    (finding,) = found.wrong
    return finding.part, finding.remedy


async def test_a_right_triple_is_fine_at_every_step_and_costs_one_request_of_16_tokens() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        found = await checked(replace(GOOD, url=server.url))
        assert set(states(found).values()) == {State.FINE}
        assert list(states(found)) == ["resolve", "connect", "models", "key", "model", "request"]
        assert found.wrong == ()
        assert found.key_hint == "…cdef (26 characters)"
        (paid,) = [request for request in server.requests if request.method == "POST"]
        assert paid.json["max_tokens"] == 16


async def test_free_sends_no_request_and_says_what_it_could_not_test() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        found = await checked(replace(GOOD, url=server.url), free=True)
        assert states(found) | {"key": State.FINE, "model": State.FINE, "request": State.SKIPPED} == states(found)
        assert found.wrong == ()
        server.answer = api(keys=[KEY], open_list=True)
        found = await checked(replace(GOOD, url=server.url, key="sk-another-0123456789"), free=True)
        assert states(found)["key"] is State.UNSURE
        assert {request.method for request in server.requests} == {"GET"}


@pytest.mark.parametrize("open_list", [False, True])
async def test_a_refused_key_is_the_key_even_where_the_list_is_open_to_anybody(open_list: bool) -> None:
    async with FakeOpenAI(api(keys=["sk-right"], open_list=open_list)) as server:
        found = await checked(replace(GOOD, url=server.url))
        assert wrong(found)[0] is Part.KEY
        assert states(found)["key"] is State.WRONG


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "the API wants a key: write one into settings.key"),
        ("sk-ant-oat01-abcdefghijklmnop", "a login token of Claude Code, not an API key"),
        ("eyJhbGciOiJSUzI1NiIs.eyJodHRwczovL2FwaS5.abc", "not an API key"),
        ("sk-or-v1-0123456789abcdef", "one of OpenRouter's"),
        ("Bearer sk-0123456789", "begins with the word Bearer"),
        ("sk-your-api-key", "is a placeholder"),
        ("sk-0123456789abcdef", "make a new key where this base URL is from, and write it into settings.key"),
    ],
)
async def test_what_a_refused_key_looks_like_is_the_remedy(key: str, said: str) -> None:
    async with FakeOpenAI(api(keys=["sk-right"])) as server:
        found = await checked(replace(GOOD, url=server.url, key=key, appended="/v1", places={Part.KEY: "settings.key"}))
        part, remedy = wrong(found)
        assert part is Part.KEY
        assert said in remedy


@pytest.mark.parametrize("free", [False, True])
async def test_a_misspelt_model_is_the_model_and_the_nearest_is_named(free: bool) -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        place = {Part.MODEL: "env.MODEL"}
        found = await checked(replace(GOOD, url=server.url, model="openai/GPT-4o-mimi", places=place), free=free)
        assert wrong(found) == (Part.MODEL, "write gpt-4o-mini into env.MODEL, the nearest of the 3 that are listed")
        assert states(found)["model"] is State.WRONG


async def test_a_list_that_lacks_the_model_is_not_believed_when_the_model_answers() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        full = server.answer
        short = api(keys=[KEY], models=["gpt-4o"])

        async def answer(request: Any, wire: Any) -> None:
            await (short if request.method == "GET" else full)(request, wire)

        server.answer = answer
        found = await checked(replace(GOOD, url=server.url))
        assert (found.wrong, states(found)["model"]) == ((), State.FINE)


@pytest.mark.parametrize(
    ("dialect", "appended", "given", "right"),
    [
        (DialectName.OPENAI_CHAT, "", "/api", "/api/v1"),
        (DialectName.OPENAI_RESPONSES, "", "/api", "/api/v1"),
        (DialectName.ANTHROPIC, "/v1", "/api/v1", "/api"),
    ],
)
async def test_a_tool_that_adds_the_path_itself_is_told_whether_v1_belongs_into_the_url(
    dialect: DialectName, appended: str, given: str, right: str
) -> None:
    async with FakeOpenAI(api("/api/v1", keys=[KEY])) as server:
        triple = replace(GOOD, dialect=dialect, appended=appended, places={Part.URL: "base_url"})
        found = await checked(replace(triple, url=server.url + given))
        assert wrong(found) == (Part.URL, f"write {server.url}{right} into base_url")
        assert (await checked(replace(triple, url=server.url + right))).wrong == ()
        free = await checked(replace(triple, url=server.url + given), free=True)
        assert wrong(free)[0] is Part.URL


async def test_two_mistakes_are_told_together() -> None:
    async with FakeOpenAI(api("/api/v1", keys=["sk-right"])) as server:
        found = await checked(replace(GOOD, url=f"{server.url}/api", appended=""))
        assert [finding.part for finding in found.wrong] == [Part.KEY, Part.URL]


@pytest.mark.parametrize("given", ["/api", "/api/v1", "/api/v1/chat/completions"])
async def test_pinchpoints_own_target_may_have_the_url_with_or_without_v1(given: str) -> None:
    async with FakeOpenAI(api("/api/v1", keys=[KEY])) as server:
        target = ProbeTargetSettings(name="t", url=server.url + given, model="gpt-4o-mini", api_key=SecretStr(KEY))
        found = await check_target(target, free=False, environment={})
        assert found.wrong == ()
        assert [note.part for note in found.notes] == ([Part.URL] if "chat" in given else [])


async def test_the_header_is_the_one_that_the_tool_sends() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        triple = replace(GOOD, url=server.url, dialect=DialectName.ANTHROPIC, appended="/v1", bearer=True)
        assert (await checked(triple)).wrong == ()
        sent = [request.headers for request in server.requests if request.method == "POST"]
        assert [("authorization" in headers, "x-api-key" in headers) for headers in sent] == [(True, False)]


async def test_a_site_instead_of_its_api_is_the_url() -> None:
    async with FakeOpenAI(api("/api/v1", page=True)) as server:
        found = await checked(replace(GOOD, url=server.url, appended=""))
        assert wrong(found)[0] is Part.URL
        assert states(found)["models"] is State.UNSURE


async def test_an_api_without_responses_is_told_to_whoever_needs_them() -> None:
    async with FakeOpenAI(api(keys=[KEY], paths=["/chat/completions"])) as server:
        found = await checked(replace(GOOD, url=f"{server.url}/v1", dialect=DialectName.OPENAI_RESPONSES, appended=""))
        part, remedy = wrong(found)
        assert part is Part.URL
        assert "no /responses: use chat completions" in remedy


async def test_an_api_without_a_list_is_fine_and_free_can_not_tell() -> None:
    async with FakeOpenAI(api(keys=[KEY], lists=False)) as server:
        found = await checked(replace(GOOD, url=server.url))
        assert (found.wrong, states(found)["models"]) == ((), State.UNSURE)
        found = await checked(replace(GOOD, url=server.url), free=True)
        assert (found.wrong, states(found)["key"]) == ((), State.UNSURE)


async def test_without_a_model_the_first_of_the_list_is_asked() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        found = await checked(replace(GOOD, url=server.url, model=""))
        assert found.wrong == ()
        assert next(step.said for step in found.steps if step.name == "model") == "none is given; gpt-4o-mini answers"


@pytest.mark.parametrize(
    ("url", "last", "part"),
    [
        ("http://127.0.0.1:9", "connect", Part.URL),
        ("http://no-such-host.invalid", "resolve", Part.URL),
    ],
)
async def test_the_way_ends_at_the_step_that_fails(url: str, last: str, part: Part) -> None:
    found = await checked(replace(GOOD, url=url))
    assert states(found)[last] is State.WRONG
    assert list(states(found))[-1] == last
    assert found.wrong[0].part is part


async def test_a_certificate_that_nobody_trusts_fails_at_tls(tmp_path: Path) -> None:
    context = Authority(tmp_path).issue("IP:127.0.0.1").server()
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        found = await checked(replace(GOOD, url=f"https://127.0.0.1:{port}"))
    assert states(found) == {"resolve": State.FINE, "connect": State.FINE, "tls": State.WRONG}
    assert wrong(found)[0] is Part.NETWORK


def test_a_host_that_is_nearly_a_providers_has_that_ones_url_for_a_remedy() -> None:
    assert near_url("https://api.openai.con/v1", DialectName.OPENAI_CHAT) == "https://api.openai.com/v1"
    assert near_url("https://taotoken.com/api", DialectName.ANTHROPIC) == "https://taotoken.net/api"
    assert near_url("https://chat.example.com", DialectName.OPENAI_CHAT) is None
    assert known_url("https://taotoken.net", DialectName.OPENAI_CHAT) == "https://taotoken.net/api"
    assert known_url("https://chat.example.com", DialectName.OPENAI_CHAT) is None


@pytest.mark.parametrize(
    ("status", "body", "part"),
    [
        (429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}, Part.ACCOUNT),
        (503, {"error": {"message": "overloaded", "type": "overloaded_error"}}, Part.SERVER),
        (403, {"error": {"message": "Country not supported", "code": "unsupported_country"}}, Part.KEY),
    ],
)
async def test_what_is_none_of_the_three_is_told_apart(status: int, body: dict[str, Any], part: Part) -> None:
    async with FakeOpenAI(replying(status, body)) as server:
        found = await checked(replace(GOOD, url=server.url))
        assert found.wrong[0].part is part


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "no base URL is given"),
        ("api.openai.com/v1", "the base URL is no http:// or https:// URL with a host"),
        ("https://me:hunter2@host", "the base URL holds credentials"),
        ("https://host/v1?key=1", "the base URL has a query or a fragment"),
    ],
)
async def test_a_url_that_is_none_is_asked_nothing(url: str, said: str) -> None:
    found = await checked(replace(GOOD, url=url))
    (finding,) = found.wrong
    assert (finding.part, found.steps) == (Part.URL, ())
    assert finding.what.startswith(said)
    assert "hunter2" not in repr(found)


async def test_proxy_variables_are_a_note_and_for_this_very_host_with_the_variable_to_set() -> None:
    async with FakeOpenAI(api(keys=[KEY])) as server:
        found = await checked(replace(GOOD, url=server.url), HTTP_PROXY="http://proxy:3128")
        assert found.wrong == ()
        (note,) = found.notes
        assert "HTTP_PROXY is set, and no_proxy does not except 127.0.0.1" in note.what
        assert "NO_PROXY=localhost,127.0.0.1" in note.remedy
        assert not (await checked(replace(GOOD, url=server.url), HTTP_PROXY="http://p", no_proxy="127.0.0.1")).notes


@pytest.mark.parametrize(
    ("url", "placement"),
    [
        ("http://127.0.0.1:8000", "local"),
        ("http://localhost:8000/v1", "local"),
        ("http://[::1]:8000", "local"),
        ("http://127.relay.example", "hosted"),
        ("http://localhost.relay.example", "hosted"),
    ],
)
def test_what_only_begins_like_this_machine_is_hosted_and_paid_from_the_ledger(url: str, placement: str) -> None:
    asked = target_of(replace(GOOD, url=url))
    assert asked.placement == placement


async def test_a_key_file_that_can_not_be_read_is_the_key(tmp_path: Path) -> None:
    target = ProbeTargetSettings(name="t", url="http://127.0.0.1:9", api_key_file=tmp_path / "absent")
    found = await check_target(target, free=True, environment={})
    assert wrong(found)[0] is Part.KEY


@pytest.mark.parametrize(
    ("url", "placement"),
    [
        ("https://127.0.0.1:8000", Placement.LOCAL),
        ("http://[::1]:8000", Placement.LOCAL),
        ("http://localhost/v1", Placement.LOCAL),
        ("http://localhost.example.com", Placement.HOSTED),
        ("http://127.example.com", Placement.HOSTED),
    ],
)
def test_only_this_very_host_is_asked_as_one_that_costs_nothing(url: str, placement: Placement) -> None:
    assert target_of(Triple(name="tool", url=url)).placement is placement
