"""What real Alertmanagers are told, and what becomes of it while one is away, hangs, or wants to know who we are."""

import asyncio
import time
from datetime import datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.outputs.alertmanager import AlertmanagerSettings
from pinchpoint.snapshot import Reason
from tests.e2e.stack import Alertmanager, WebhookSink, free_port
from tests.fakes.certificates import Authority
from tests.fakes.nginx import nginx
from tests.outputs.alertmanager.members import (
    PASSWORD,
    USER,
    LockedAlertmanager,
    delivery,
    idle,
    notice,
    notices,
)

NAME = "PinchpointKVCacheHigh"


async def test_every_member_is_told_and_the_page_ends(tmp_path: Path) -> None:
    async with (
        WebhookSink() as human,
        Alertmanager(tmp_path, human.url) as one,
        Alertmanager(tmp_path, human.url) as two,
    ):
        mine = delivery({"url": one.url}, {"url": two.url})
        firing = notice(engine="chat")
        mine.tell(notices(firing))
        await idle(mine)
        for member in (one, two):
            (alert,) = await member.alerts()
            assert alert["labels"] == dict(firing.labels)
            assert alert["annotations"] == dict(firing.annotations)
            assert alert["generatorURL"] == "http://node:10770/"
            assert 230 < _seconds(alert["endsAt"]) - time.time() < 245
            assert abs(_seconds(alert["startsAt"]) - firing.starts_at) < 0.002
        await human.wait_for(NAME, "firing")
        mine.tell(notices(notice(engine="chat", ended=True)))
        await human.wait_for(NAME, "resolved")
        reports = mine.reports()
        assert [(each.up, each.notifications_total, each.queue_length) for each in reports] == [(True, 2, 0)] * 2
        await mine.close(1)


async def test_one_that_was_away_hears_what_is_so_now_once_and_the_log_has_two_lines(tmp_path: Path) -> None:
    port = free_port()
    async with WebhookSink() as human:
        mine = delivery({"url": f"http://127.0.0.1:{port}"}, evaluation_interval_seconds=1)
        with capture_logs() as lines:
            for _ in range(3):
                mine.tell(notices(notice(engine="chat"), notice(engine="code"), notice(engine="gone", ended=True)))
                await idle(mine)
            (report,) = mine.reports()
            assert (report.up, report.queue_length) == (False, 3)
            assert report.notifications_failed_total.keys() == {Reason.CONNECT_REFUSED}
            member = Alertmanager(tmp_path, human.url)
            member.port = port
            async with member:
                deadline = time.monotonic() + 15
                while not mine.reports()[0].up:
                    mine.tell(notices(notice(engine="chat")))
                    await idle(mine)
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.2)
                assert [alert["labels"]["engine"] for alert in await member.alerts()] == ["chat"]
        await mine.close(1)
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "Alertmanager is not told of alerts"),
        ("info", "Alertmanager is told of alerts again"),
    ]
    assert lines[0]["reason"] == "connect_refused"


async def test_one_that_hangs_is_left_after_its_own_time_and_holds_up_no_other(tmp_path: Path) -> None:
    async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(hangs, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with silent, WebhookSink() as human, Alertmanager(tmp_path, human.url) as well:
        mine = delivery({"url": url, "timeout_seconds": 1.5}, {"url": well.url})
        began = time.monotonic()
        mine.tell(notices(notice(engine="chat")))
        while not mine.reports()[1].up:
            assert time.monotonic() - began < 1.4
            await asyncio.sleep(0.02)
        mine.tell(notices(notice(engine="chat"), notice(engine="code")))  # the one that hangs is still busy
        await idle(mine)
        assert time.monotonic() - began < 3
        assert mine.reports()[0].notifications_failed_total == {Reason.TIMEOUT: 1}
        assert len(await well.alerts()) == 2
        await mine.close(1)


async def test_tls_client_certificate_password_and_prefix(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    secret = tmp_path / "password"
    secret.write_text("not yet\n")
    async with WebhookSink() as human, LockedAlertmanager(tmp_path, human.url, authority) as locked:
        tls = {
            "ca_file": str(authority.file),
            "certificate_file": str(locked.client.certificate),
            "key_file": str(locked.client.key),
        }
        target = {
            "url": locked.url + locked.prefix,
            "basic_auth": {"username": USER, "password_file": str(secret)},
            "tls": tls,
        }
        mine = delivery(target)
        with capture_logs() as lines:
            mine.tell(notices(notice(engine="chat")))
            await idle(mine)
            assert mine.reports()[0].notifications_failed_total == {Reason.UNAUTHORIZED: 1}
            secret.write_text(PASSWORD)
            await asyncio.sleep(1)
            mine.tell(notices(notice(engine="chat")))
            await idle(mine)
        assert mine.reports()[0].up
        assert len(await locked.alerts()) == 1
        assert PASSWORD not in str(lines)
        await mine.close(1)
        for broken, reason in (
            ({**target, "tls": {}}, Reason.TLS),  # whose certificate is that
            ({**target, "tls": {"ca_file": str(authority.file)}}, Reason.TLS),  # and who are we
            ({**target, "url": locked.url}, Reason.HTTP_STATUS),  # without its prefix
        ):
            theirs = delivery(broken)
            theirs.tell(notices(notice(engine="other")))
            await idle(theirs)
            assert theirs.reports()[0].notifications_failed_total == {reason: 1}, broken
            await theirs.close(1)
        insecure = delivery({**target, "tls": {**tls, "verify": False, "ca_file": None}})
        insecure.tell(notices(notice(engine="code")))
        await idle(insecure)
        assert len(await locked.alerts()) == 2
        await insecure.close(1)


async def test_a_bearer_token_and_a_tenant_reach_the_gateway_in_front(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("sesame\n")
    gate = (
        'if ($http_authorization != "Bearer sesame") { return 401; } if ($http_x_scope_orgid != "team") { return 403; }'
    )
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as behind:
        with nginx(tmp_path, behind.url, gate) as url:
            target = {"url": url, "bearer_token_file": str(secret), "headers": {"X-Scope-OrgID": "team"}}
            mine = delivery(target)
            mine.tell(notices(notice(engine="chat")))
            await idle(mine)
            assert mine.reports()[0].up
            await mine.close(1)
        assert len(await behind.alerts()) == 1


async def test_many_alerts_are_told_in_parts_and_a_firing_one_again_when_it_is_due(tmp_path: Path) -> None:
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        mine = delivery({"url": member.url}, evaluation_interval_seconds=1, resend_seconds=2)
        every = [notice(engine=str(number)) for number in range(600)]
        mine.tell(notices(*every))
        await idle(mine)
        assert len(await member.alerts()) == 600
        assert mine.reports()[0].notifications_total == 3
        mine.tell(notices(*every))  # nothing is due
        await idle(mine)
        assert mine.reports()[0].notifications_total == 3
        await asyncio.sleep(1.6)
        mine.tell(notices(*every[:10]))
        await idle(mine)
        assert mine.reports()[0].notifications_total == 4
        await mine.close(1)


async def test_what_is_refused_is_not_sent_over_and_over_and_what_is_good_arrives(tmp_path: Path) -> None:
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        mine = delivery({"url": member.url}, resend_seconds=60)
        told = notices(notice(engine="chat", **{"not-a-label": "1"}), notice(engine="code"))
        with capture_logs() as lines:
            for _ in range(3):
                mine.tell(told)
                await idle(mine)
        (report,) = mine.reports()
        assert (report.notifications_failed_total, report.up) == ({Reason.REFUSED: 1}, False)
        assert [alert["labels"]["engine"] for alert in await member.alerts()] == ["code"]
        assert [line["reason"] for line in lines] == ["refused"]
        await mine.close(1)


async def test_whatever_was_done_to_our_clock_alertmanager_takes_it(tmp_path: Path) -> None:
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        mine = delivery({"url": member.url})
        mine.tell(notices(notice(engine="future", since=-3600), notice(engine="ended", since=-3600, ended=True)))
        await idle(mine)
        assert mine.reports()[0].up
        await mine.close(1)


async def test_members_that_stay_are_not_told_anew_by_a_reload(tmp_path: Path) -> None:
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        mine = delivery({"url": member.url}, resend_seconds=60)
        mine.tell(notices(notice(engine="chat")))
        await idle(mine)
        stays = {"url": member.url}
        quick = {"evaluation_interval_seconds": 1, "resend_seconds": 60}
        mine.follow(AlertmanagerSettings.model_validate({"targets": [stays, {"url": "http://127.0.0.1:9"}], **quick}))
        mine.tell(notices(notice(engine="chat", since=60)))
        await idle(mine)
        mine.follow(AlertmanagerSettings())
        assert mine.reports() == ()
        await mine.close(1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"targets": [{"url": "http://a"}, {"url": "http://a/"}]}, "given twice"),
        ({"targets": [{"url": "http://u:p@a"}]}, "credentials"),
        ({"targets": [{"url": "http://a?x=1"}]}, "query"),
        ({"targets": [{"url": "http://a", "bearer_token_file": "/nowhere"}]}, "bearer_token_file"),
        ({"labels": {"not-a-label": "1"}}, "no label's name"),
        ({"labels": {"source": "me"}}, "set by pinchpoint"),
        ({"labels": {"cluster": "a\nb"}}, "unprintable"),
        ({"resend_seconds": 0}, "greater than"),
        ({"resned_seconds": 1}, "Extra inputs"),
    ],
)
def test_a_mistake_in_the_settings_is_told(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlertmanagerSettings.model_validate(given)


def _seconds(time_text: str) -> float:
    return datetime.fromisoformat(time_text).timestamp()
