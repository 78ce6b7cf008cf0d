"""Engines from an HTTP server: real answers, bad ones, and a server that is down."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import ValidationError

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery import http as http_module
from pinchpoint.sources.discovery.http import HttpFinder
from pinchpoint.sources.discovery.settings import HttpDiscoverySettings
from pinchpoint.sources.http import HttpClient, SourceError
from tests.sources.discovery.listing import ground, names

GOOD = b'[{"targets": ["10.0.0.1:8000", "10.0.0.2:8000"], "labels": {"__meta_x": "1", "engine": "chat"}}]'


@asynccontextmanager
async def finding_at(
    answer: web.Response, asked: list[web.Request] | None = None, **settings
) -> AsyncIterator[HttpFinder]:
    """A finder whose server gives one answer."""

    async def engines(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append(request)
        return answer

    app = web.Application()
    app.router.add_get("/engines", engines)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/engines?site=a"
    async with HttpClient() as client:
        yield HttpFinder(HttpDiscoverySettings(name="cmdb", url=url, **settings), ground(client=client))
    await runner.cleanup()


async def test_a_list_is_asked_for_as_prometheus_asks() -> None:
    asked: list[web.Request] = []
    async with finding_at(web.Response(body=GOOD, content_type="application/json"), asked, interval_seconds=30) as cmdb:
        finding = await cmdb.find()
    assert names(finding.targets) == ["chat/10.0.0.1:8000", "chat/10.0.0.2:8000"]
    assert {target.found_by for target in finding.targets} == {"http/cmdb"}
    (request,) = asked
    assert request.path_qs == "/engines?site=a"
    assert request.headers["X-Prometheus-Refresh-Interval-Seconds"] == "30"
    assert request.headers["Accept"] == "application/json"


async def test_the_server_and_the_engines_have_each_their_own_token() -> None:
    asked: list[web.Request] = []
    tokens = {"bearer_token": "for-cmdb", "engine_access": {"bearer_token": "for-engines"}}
    async with finding_at(web.Response(body=GOOD), asked, **tokens) as cmdb:
        finding = await cmdb.find()
    assert asked[0].headers["Authorization"] == "Bearer for-cmdb"
    assert {target.access.bearer_token for target in finding.targets} == {"for-engines"}


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (web.Response(status=500), Reason.HTTP_STATUS, "answers 500"),
        (web.Response(status=204), Reason.HTTP_STATUS, "answers 204"),
        (web.Response(status=403), Reason.UNAUTHORIZED, "answers 403"),
        (web.Response(text="<html>"), Reason.INVALID, "is no JSON; check url"),
        (web.Response(body=GOOD[:-9]), Reason.INVALID, "is no JSON"),
        (web.Response(body=b"\xff\xfe"), Reason.INVALID, "is no JSON"),
        (web.Response(body=b"[" * 100_000), Reason.INVALID, "is no JSON"),
        (web.Response(text='{"targets": []}'), Reason.INVALID, "is no list of groups"),
    ],
)
async def test_what_is_no_list_is_a_failure(answer: web.Response, reason: Reason, said: str) -> None:
    async with finding_at(answer) as cmdb:
        with pytest.raises(SourceError, match=said) as raised:
            await cmdb.find()
    assert raised.value.reason is reason
    assert "site=a" not in raised.value.detail, "a query may hold a key"


async def test_a_body_without_end_is_cut(monkeypatch) -> None:
    monkeypatch.setattr(http_module, "MAX_BODY_BYTES", 10_000)
    async with finding_at(web.Response(body=b"[" + b" " * 20_000 + b"]")) as cmdb:
        with pytest.raises(SourceError) as raised:
            await cmdb.find()
    assert raised.value.reason is Reason.TOO_LARGE


async def test_an_empty_list_is_a_good_one() -> None:
    async with finding_at(web.Response(text="[]")) as cmdb:
        finding = await cmdb.find()
    assert (finding.targets, finding.refused) == ((), ())


async def test_a_url_without_a_scheme_is_an_item_refused() -> None:
    async with finding_at(web.Response(text='[{"targets": ["a:1", "http://b:1"]}]')) as cmdb:
        finding = await cmdb.find()
    assert names(finding.targets) == ["a:1"]
    assert "target 'http://b:1' is a URL; give host:port" in finding.refused[0]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("cmdb:8080/engines", "is no http:// or https:// URL"),
        ("http://user:secret@cmdb/engines", "holds credentials"),
        ("http://cmdb:port/", "is no URL with a valid host and port"),
    ],
)
def test_a_url_that_can_t_be_is_refused_by_the_settings(url: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said) as raised:
        HttpDiscoverySettings(name="cmdb", url=url)
    assert "secret" not in str(raised.value)
