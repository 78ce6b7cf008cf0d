"""The role for finding engines: what the code asks for, and no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pinchpoint.sources.discovery.kubernetes.refusal import RBAC

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "kubernetes" / "rbac.yaml"


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(FILE.read_text()))


def test_a_role_lets_list_and_watch_pods_and_nothing_else(objects: list[dict[str, Any]]) -> None:
    roles = [each for each in objects if each["kind"] in ("Role", "ClusterRole")]
    assert {role["kind"] for role in roles} == {"Role", "ClusterRole"}
    for role in roles:
        assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]


def test_each_role_is_bound_to_the_service_account_and_to_nobody_else(objects: list[dict[str, Any]]) -> None:
    account = next(each for each in objects if each["kind"] == "ServiceAccount")["metadata"]
    for role in (each for each in objects if each["kind"] in ("Role", "ClusterRole")):
        binding = next(each for each in objects if each["kind"] == f"{role['kind']}Binding")
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role["kind"],
            "name": role["metadata"]["name"],
        }
        assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
        assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")


def test_the_remedy_for_a_refusal_names_this_file() -> None:
    assert str(FILE.relative_to(ROOT)) in RBAC
