"""Where the API server answers, and how long a pause is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.discovery.kubernetes import KubernetesSettings
from pinchpoint.sources.discovery.kubernetes.cluster import cluster_around
from pinchpoint.sources.discovery.kubernetes.pods import pause_seconds
from pinchpoint.sources.http import SourceError

ACCOUNT = Path("/account")


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, "https://[fd00::1]:6443"),
        ({"KUBERNETES_SERVICE_HOST": "[fd00::1]"}, "https://[fd00::1]:443"),
        (
            {
                "KUBERNETES_SERVICE_HOST": "api.internal",
                "KUBERNETES_SERVICE_PORT": "80",
                "KUBERNETES_SERVICE_PORT_HTTPS": "443",
            },
            "https://api.internal:443",
        ),
    ],
)
def test_the_pods_environment_names_the_api_server(environment: dict[str, str], url: str) -> None:
    assert cluster_around(None, ACCOUNT, environment).url == url


def test_the_configuration_wins_over_the_environment() -> None:
    assert cluster_around("https://there:1", ACCOUNT, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).url == "https://there:1"


@pytest.mark.parametrize("host", ["a/b", "a b", "a@b", "x" * 300])
def test_an_environment_that_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(SourceError) as error:
        cluster_around(None, ACCOUNT, {"KUBERNETES_SERVICE_HOST": host})
    assert error.value.reason is Reason.INVALID


def test_no_token_goes_over_plain_http() -> None:
    assert cluster_around("http://127.0.0.1:8001", ACCOUNT, {}).access() == HttpAccess()
    assert cluster_around("https://127.0.0.1:8001", ACCOUNT, {}).access().bearer_token_file == "/account/token"


def test_our_namespace_is_read_and_nothing_odd_is_taken_for_one(tmp_path: Path) -> None:
    cluster = cluster_around("https://there", tmp_path, {})
    assert cluster.namespace() == ""
    (tmp_path / "namespace").write_text("ml\n")
    assert cluster.namespace() == "ml"
    (tmp_path / "namespace").write_text("../../secrets")
    assert cluster.namespace() == ""


@given(attempts=st.integers(1, 10**6), chance=st.floats(0, 1), at_least=st.floats(0, 10**6))
def test_a_pause_grows_to_a_minute_and_is_as_long_as_the_server_says(
    attempts: int, chance: float, at_least: float
) -> None:
    pause = pause_seconds(attempts, chance, at_least)
    assert 0.25 <= pause <= max(60.0, 300 * 1.25)
    assert pause >= min(at_least, 300)
    assert pause_seconds(attempts, chance) <= 60
    assert pause_seconds(20, chance) >= 30


@pytest.mark.parametrize(
    "bad",
    [
        {"namespaces": ["ml/../kube-system"]},
        {"namespaces": ["*", "ml"]},
        {"namespaces": ["Ml"]},
        {"node_name": "a,metadata.name=b"},
        {"label_selector": "app=\nvllm"},
        {"annotation": "example.com/scrape"},
        {"api_server": "10.0.0.1:6443"},
        {"engine_access": {"bearer_token": "two\nlines"}},
    ],
)
def test_a_setting_that_could_not_be_asked_for_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        KubernetesSettings.model_validate(bad)
