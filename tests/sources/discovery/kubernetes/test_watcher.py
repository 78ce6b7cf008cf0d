"""The watcher against an API server on a real socket: what it tells, whatever happens to the connection."""

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from pinchpoint.snapshot import EngineTarget, Reason
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.kubernetes import KubernetesSettings, KubernetesWatcher
from pinchpoint.sources.discovery.kubernetes.watcher import THREAD_ABOVE_PODS
from pinchpoint.sources.http import SourceError
from pinchpoint.sources.http.client import HttpClient
from tests.fakes.kubernetes_api import Answer, FakeKubernetes, pod
from tests.sources.discovery.kubernetes.following import Following, build, following


async def test_ten_thousand_pods_come_page_by_page_and_only_engines_are_kept(api: FakeKubernetes) -> None:
    api.put(*(pod(f"job-{number}", annotations={}) for number in range(10_000)), pod("chat-1"))
    async with following(api) as follows:
        await follows.until_engines({"ml/chat-1"})
    pages = [asked for asked in api.asked if not asked.watches]
    assert len(pages) == 101
    assert {asked.query["limit"] for asked in pages} == {"100"}


async def test_pages_that_are_too_large_are_asked_for_in_smaller_ones(api: FakeKubernetes) -> None:
    megabyte = {"pinchpoint.io/scrape": "true", "notes": "x" * 2**20}
    api.put(*(pod(f"chat-{number}", annotations=megabyte) for number in range(12)))
    async with following(api) as follows:
        await follows.until_engines({f"ml/chat-{number}" for number in range(12)})
        assert follows.failures == []
    assert [asked.query["limit"] for asked in api.asked if not asked.watches] == ["100", "25", "6", *["1"] * 12]


async def test_a_list_that_expires_between_two_pages_begins_anew(api: FakeKubernetes) -> None:
    api.put(*(pod(f"chat-{number}") for number in range(150)))
    async with following(api) as follows:
        await follows.until(lambda: len(api.asked) == 1)
        api.compact()
        await follows.until_engines({f"ml/chat-{number}" for number in range(150)})
        assert follows.failures == []


async def test_a_list_without_end_is_given_up(api: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinchpoint.sources.discovery.kubernetes.pods.MAX_PAGES", 20)
    endless = {"kind": "PodList", "metadata": {"resourceVersion": "5", "continue": "on"}, "items": []}
    api.answers.extend([Answer(200, body=json.dumps(endless).encode())] * 20)
    async with following(api) as follows:
        assert (await follows.until_failure()).reason is Reason.TOO_LARGE
        await follows.until_well()


@pytest.mark.parametrize("as_status", [False, True], ids=["as an event", "as a status"])
async def test_a_version_that_is_gone_is_listed_anew_without_a_failure(api: FakeKubernetes, as_status: bool) -> None:
    api.gone_as_status = as_status
    api.put(pod("chat-1"), pod("chat-2"))
    async with following(api) as follows:
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        await follows.until(lambda: api.watching == 1)
        api.cut()
        api.delete("chat-2")
        api.put(pod("chat-3"))
        api.compact()
        await follows.until_engines({"ml/chat-1", "ml/chat-3"})
        assert follows.failures == []


async def test_a_watch_that_ends_is_resumed_from_the_last_version_not_from_a_list(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        for end in (api.end, api.cut, api.end):
            end()
            api.delete("chat-1")
            await follows.until_engines(set())
            await follows.until(lambda: api.watching == 1)
            api.put(pod("chat-1"))
            await follows.until_engines({"ml/chat-1"})
    assert [asked.watches for asked in api.asked] == [False, True, True, True, True]


async def test_a_bookmark_moves_the_version_and_confirms_the_list(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        await asyncio.sleep(0.02)  # until the watch that stands has been told, too
        heard = len(follows.said)
        api.skip_versions(1000)
        version = api.bookmark()
        await follows.until(lambda: len(follows.said) > heard)
        api.end()
        await follows.until(lambda: len(api.asked) == 3)
        assert api.asked[-1].query["resourceVersion"] == str(version)
        assert api.asked[-1].query["allowWatchBookmarks"] == "true"
        assert 300 <= int(api.asked[-1].query["timeoutSeconds"]) <= 600


async def test_a_connection_cut_in_the_middle_of_a_line_loses_and_invents_nothing(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        api.say(b'{"type": "DELETED", "object": {"metadata": {"name": "chat-1", "namesp')
        api.put(pod("chat-2"))  # its line goes on where the other broke off
        api.cut()
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        await follows.until_well()


async def test_a_watch_that_has_been_silent_for_too_long_is_asked_anew_and_nothing_is_amiss(
    api: FakeKubernetes,
) -> None:
    api.put(pod("chat-1"))
    three_minutes_later = count(step=180.0)
    async with following(api, silence_seconds=0.02, clock=lambda: next(three_minutes_later)) as follows:
        await follows.until(lambda: len(api.asked) >= 8)
        assert follows.failures == []
    assert [asked.watches for asked in api.asked].count(False) == 1
    assert max(follows.slept) <= 0.5


async def test_a_server_that_ends_every_watch_at_once_is_listed_ever_more_seldom(api: FakeKubernetes) -> None:
    """https://github.com/kubernetes/kubernetes/issues/104171"""
    api.shuts_watches_at_once = True
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until_engines({"ml/chat-1"})
        api.put(pod("chat-2"))
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        await follows.until(lambda: len(api.asked) > 30)
    assert max(follows.slept) == 60.0 * 0.75


@pytest.mark.parametrize(
    "line",
    [b"no json\n", b'{"type": "ADDED"}\n', b"[]\n", b"\xff\xfe\n", b'{"type": 1, "object": {}}\n'],
)
async def test_a_line_that_is_no_event_is_a_failure_and_the_list_stays(api: FakeKubernetes, line: bytes) -> None:
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        api.say(line)
        await follows.until_failure()
        assert follows.engines == ["ml/chat-1"]
        await follows.until_well()
        assert follows.engines == ["ml/chat-1"]


async def test_a_line_without_end_is_given_up(api: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinchpoint.sources.discovery.kubernetes.api.MAX_LINE_BYTES", 100_000)
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        api.say(b"x" * 300_000)
        assert (await follows.until_failure()).reason is Reason.TOO_LARGE
        await follows.until_well()


async def test_a_pod_of_a_megabyte_is_taken_from_a_watch(api: FakeKubernetes) -> None:
    async with following(api) as follows:
        await follows.until(lambda: api.watching == 1)
        api.put(pod("chat-1", annotations={"pinchpoint.io/scrape": "true", "notes": "x" * 2**20}))
        await follows.until_engines({"ml/chat-1"})


async def test_while_the_api_server_is_away_the_last_list_holds_and_it_is_asked_ever_more_seldom(
    api: FakeKubernetes,
) -> None:
    api.put(pod("chat-1"))
    async with following(api) as follows:
        await follows.until_engines({"ml/chat-1"})
        await follows.until(lambda: api.watching == 1)
        await api.stop()
        assert (await follows.until_failure()).reason is Reason.CONNECT_REFUSED
        await follows.until(lambda: max(follows.slept) == 60.0 * 0.75)
        assert isinstance(follows.last, Finding)
        assert follows.engines == ["ml/chat-1"]
        api.put(pod("chat-2"))
        await api.start()
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        await follows.until_well()


async def test_a_server_that_never_answers_is_a_timeout(api: FakeKubernetes) -> None:
    api.hangs = True
    async with following(api, timeout_seconds=0.05) as follows:
        assert (await follows.until_failure()).reason is Reason.TIMEOUT


async def test_before_there_ever_was_a_list_a_failure_is_all_there_is_to_say(api: FakeKubernetes) -> None:
    api.answers.append(Answer(503))
    async with following(api) as follows:
        await follows.until(lambda: bool(follows.said))
        assert isinstance(follows.said[0], SourceError)


async def test_of_two_namespaces_the_one_that_can_be_read_is_kept_up_to_date(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"), pod("chat-1", "prod"), pod("chat-1", "other"))
    async with following(api, namespaces=("ml", "prod"), node_name="") as follows:
        await follows.until_engines({"ml/chat-1", "prod/chat-1"})
        await follows.until(lambda: api.watching == 2)
        ml = next(watch for watch in api._watches if watch.query.namespace == "ml")
        api.watch_answers.extend([Answer(500)] * 1000)
        ml.transport.abort()
        await follows.until_failure()
        api.put(pod("chat-2", "prod"))
        await follows.until_engines({"ml/chat-1", "prod/chat-1", "prod/chat-2"})
        assert follows.failure is not None


@pytest.mark.parametrize(
    ("environment", "reason", "remedy"),
    [
        ({}, Reason.NOT_CONFIGURED, "set api_server"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NODE_NAME": "a,metadata.name=b"}, Reason.INVALID, "set node_name"),
    ],
)
async def test_where_the_environment_does_not_say_enough_it_says_what_to_set_and_asks_nobody(
    environment: dict[str, str], reason: Reason, remedy: str
) -> None:
    follows = Following()
    async with HttpClient() as client:
        ground = Ground(client=client, build=build, now=time.monotonic)
        watcher = KubernetesWatcher(KubernetesSettings(enabled=True), ground, environment=environment)
        task = asyncio.create_task(watcher.watch(follows.said.append))
        failure = await follows.until_failure()
        task.cancel()
        await asyncio.wait([task])
    assert failure.reason is reason
    assert remedy in failure.detail


@pytest.mark.parametrize(
    ("given", "environment", "paths", "fields"),
    [
        ({}, {"NODE_NAME": "node-a"}, {"/api/v1/pods"}, "status.phase=Running,spec.nodeName=node-a"),
        ({"node_name": "b"}, {"NODE_NAME": "a"}, {"/api/v1/pods"}, "status.phase=Running,spec.nodeName=b"),
        ({"node_name": ""}, {"NODE_NAME": "a"}, {"/api/v1/namespaces/ml/pods"}, "status.phase=Running"),
        ({}, {}, {"/api/v1/namespaces/ml/pods"}, "status.phase=Running"),
        ({"namespaces": ("*",)}, {}, {"/api/v1/pods"}, "status.phase=Running"),
        (
            {"namespaces": ("a", "b"), "node_name": "n"},
            {},
            {"/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"},
            "status.phase=Running,spec.nodeName=n",
        ),
    ],
)
async def test_which_pods_are_asked_for(
    secure: FakeKubernetes, given: dict[str, Any], environment: dict[str, str], paths: set[str], fields: str
) -> None:
    async with following(secure, environment=environment, label_selector="app=vllm", **given) as follows:
        await follows.until(lambda: secure.watching == len(paths))
    assert {asked.path for asked in secure.asked} == paths
    assert {asked.query["fieldSelector"] for asked in secure.asked} == {fields}
    assert {asked.query["labelSelector"] for asked in secure.asked} == {"app=vllm"}


async def test_the_credentials_for_engines_go_to_every_engine_and_never_print(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"), pod("chat-2"))
    async with following(api, engine_access={"bearer_token": "engine-secret"}) as follows:
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        assert isinstance(follows.last, Finding)
        assert {target.access.bearer_token for target in follows.last.targets} == {"engine-secret"}
        assert "engine-secret" not in repr(follows.last)


async def test_many_engines_are_described_beside_the_loop(api: FakeKubernetes) -> None:
    """Ten thousand were described on it at every change: seconds in which nothing else was done."""
    threads: set[int] = set()

    def noting(values: Mapping[str, object]) -> EngineTarget:
        threads.add(threading.get_ident())
        return build(values)

    names = [f"chat-{number}" for number in range(THREAD_ABOVE_PODS + 1)]
    api.put(*map(pod, names))
    async with following(api, build=noting) as follows:
        await follows.until_engines({f"ml/{name}" for name in names})
    assert threads
    assert threading.get_ident() not in threads
