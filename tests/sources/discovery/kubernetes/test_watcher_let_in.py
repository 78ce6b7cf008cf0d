"""The watcher before an API server that wants to know who asks, that refuses, and that answers nonsense."""

from pathlib import Path

import pytest

from pinchpoint.snapshot import Reason
from tests.fakes.kubernetes_api import Answer, FakeKubernetes, pod, service_account
from tests.sources.discovery.kubernetes.following import following


async def test_pods_come_change_and_go_over_tls_with_the_clusters_own_authority(secure: FakeKubernetes) -> None:
    secure.put(pod("chat-1"), pod("database", annotations={}), pod("chat-2", node="node-b"))
    async with following(secure) as follows:
        await follows.until_engines({"ml/chat-1"})
        secure.put(pod("chat-3", ip="10.1.0.9"))
        await follows.until_engines({"ml/chat-1", "ml/chat-3"})
        secure.put(pod("chat-1", phase="Succeeded"))
        await follows.until_engines({"ml/chat-3"})
        secure.delete("chat-3")
        await follows.until_engines(set())
    assert [asked.watches for asked in secure.asked] == [False, True]
    assert all(asked.authorization == "Bearer first-token" for asked in secure.asked)
    assert secure.asked[0].query["fieldSelector"] == "status.phase=Running,spec.nodeName=node-a"


async def test_another_authority_is_a_failure_of_tls_that_names_the_remedy(
    secure: FakeKubernetes, tmp_path: Path
) -> None:
    secure.account = service_account(tmp_path / "another")
    async with following(secure) as follows:
        failure = await follows.until_failure()
    assert failure.reason is Reason.TLS
    assert "ca.crt" in failure.detail
    assert secure.asked == []


async def test_a_token_that_was_rotated_is_read_again_at_once(secure: FakeKubernetes, cluster: Path) -> None:
    secure.put(pod("chat-1"))
    async with following(secure) as follows:
        await follows.until_engines({"ml/chat-1"})
        (cluster / "token").write_text("second-token-longer")
        secure.tokens = {"second-token-longer"}
        secure.put(pod("chat-2"))
        secure.cut()
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        await follows.until(lambda: secure.watching == 1)
        assert follows.failures == []


async def test_a_token_that_is_refused_twice_is_a_failure_and_shows_no_token(secure: FakeKubernetes) -> None:
    secure.tokens = {"another"}
    async with following(secure) as follows:
        failure = await follows.until_failure()
    assert (failure.reason, "HTTP 401" in failure.detail) == (Reason.UNAUTHORIZED, True)
    assert "first-token" not in str(failure)


async def test_without_a_token_nothing_is_asked(secure: FakeKubernetes, cluster: Path) -> None:
    (cluster / "token").unlink()
    async with following(secure) as follows:
        failure = await follows.until_failure()
    assert failure.reason is Reason.UNAUTHORIZED
    assert f"{cluster}/token" in failure.detail
    assert secure.asked == []


async def test_a_refusal_names_verb_resource_namespace_and_remedy(api: FakeKubernetes) -> None:
    api.answers.append(Answer(403, 'pods is forbidden: User "system:serviceaccount:ml:pinchpoint" cannot list'))
    async with following(api, namespaces=("ml",), node_name="") as follows:
        failure = await follows.until_failure()
        await follows.until_well()
    assert failure.reason is Reason.UNAUTHORIZED
    for word in ("list pods", "in namespace ml", "HTTP 403", "deploy/kubernetes/rbac.yaml", "system:serviceaccount:ml"):
        assert word in failure.detail


async def test_where_we_may_list_and_not_watch_the_list_is_asked_again_and_again(api: FakeKubernetes) -> None:
    api.put(pod("chat-1"))
    api.watch_answers.extend([Answer(403)] * 50)
    async with following(api) as follows:
        await follows.until_engines({"ml/chat-1"})
        assert "may not watch pods in all namespaces" in (await follows.until_failure()).detail
        api.put(pod("chat-2"))
        await follows.until_engines({"ml/chat-1", "ml/chat-2"})
        assert follows.failure is not None


async def test_a_server_that_is_busy_is_left_alone_as_long_as_it_says(api: FakeKubernetes) -> None:
    api.answers.append(Answer(429, headers={"Retry-After": "17"}))
    async with following(api) as follows:
        assert (await follows.until_failure()).reason is Reason.HTTP_STATUS
        await follows.until_well()
    assert 17 <= follows.slept[0] <= 17 * 1.25


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"message": 3}', b"[" * 60_000, b"x" * 200_000])
async def test_an_error_with_any_body_is_a_failure_in_one_line_and_is_asked_again(
    api: FakeKubernetes, body: bytes
) -> None:
    api.put(pod("chat-1"))
    api.answers.extend([Answer(500, body=body), Answer(502, body=body)])
    async with following(api) as follows:
        failure = await follows.until_failure()
        await follows.until_engines({"ml/chat-1"})
        await follows.until_well()
    assert failure.reason is Reason.HTTP_STATUS
    assert failure.detail.isprintable()
    assert len(failure.detail) < 400


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"items": 1}', b'{"items": []}', b'{"items": [], "metadata": {"resourceVersion": ""}}']
)
async def test_what_is_no_list_of_pods_is_invalid(api: FakeKubernetes, body: bytes) -> None:
    api.answers.append(Answer(200, body=body))
    async with following(api) as follows:
        assert (await follows.until_failure()).reason is Reason.INVALID


async def test_a_redirect_is_not_followed_with_our_token(secure: FakeKubernetes) -> None:
    secure.answers.append(Answer(302, headers={"Location": f"{secure.url}/api/v1/pods?elsewhere"}))
    async with following(secure) as follows:
        assert "HTTP 302" in (await follows.until_failure()).detail
    assert all("elsewhere" not in asked.query for asked in secure.asked)
