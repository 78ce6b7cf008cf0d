"""Which pods are engines, and what their annotations and ports say of them."""

from typing import Any

import pytest

from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.discovery.kubernetes import KubernetesSettings
from pinchpoint.sources.discovery.kubernetes.engine import engines_of, is_wanted
from pinchpoint.sources.discovery.kubernetes.pod import Pod, pod_in
from tests.fakes.kubernetes_api import pod
from tests.sources.discovery.kubernetes.following import build

ANNOTATED = KubernetesSettings()
LABELLED = KubernetesSettings(label_selector="app=vllm")
PROMETHEUS = KubernetesSettings(annotation="prometheus.io/scrape")


def a_pod(name: str = "chat-1", namespace: str = "ml", **given: Any) -> Pod:
    found = pod_in(pod(name, namespace, **given))
    assert found is not None
    return found


def found(*pods: Pod, settings: KubernetesSettings = LABELLED) -> tuple[EngineTarget, ...]:
    targets, refused = engines_of(pods, settings, found_by="kubernetes", build=build)
    assert refused == ()
    return targets


def refused(pod: Pod, settings: KubernetesSettings = LABELLED) -> str:
    targets, refused = engines_of([pod], settings, found_by="kubernetes", build=build)
    assert targets == ()
    return refused[0]


OWN, THEIRS = "pinchpoint.io/scrape", "prometheus.io/scrape"


@pytest.mark.parametrize(
    ("settings", "annotations", "wanted"),
    [
        (ANNOTATED, {}, False),
        (ANNOTATED, {OWN: "true"}, True),
        (ANNOTATED, {THEIRS: "true"}, False),
        (LABELLED, {}, True),
        (LABELLED, {OWN: "false"}, False),
        (LABELLED, {THEIRS: "false"}, True),
        (PROMETHEUS, {}, False),
        (PROMETHEUS, {THEIRS: "true"}, True),
        (PROMETHEUS, {THEIRS: "true", OWN: "false"}, False),
        (PROMETHEUS, {THEIRS: "false", OWN: "true"}, True),
        (KubernetesSettings(label_selector="app=vllm", annotation="prometheus.io/scrape"), {}, False),
        (KubernetesSettings(annotation="none"), {}, True),
    ],
)
def test_what_makes_a_pod_an_engine(settings: KubernetesSettings, annotations: dict[str, str], wanted: bool) -> None:
    assert is_wanted(a_pod(annotations=annotations), settings) is wanted


def test_an_engine_is_called_namespace_and_pod_and_tells_people_where_it_runs() -> None:
    (target,) = found(a_pod(ready=False))
    assert (target.engine, target.url, target.metrics_path) == ("ml/chat-1", "http://10.1.0.7:8000", "/metrics")
    assert target.found_by == "kubernetes"
    assert target.labels == {"namespace": "ml", "pod": "chat-1", "node": "node-a", "ready": "false"}


def test_an_ipv6_address_is_put_in_brackets() -> None:
    assert found(a_pod(ip="fd00:0:0::7"))[0].url == "http://[fd00::7]:8000"


@pytest.mark.parametrize(
    ("annotations", "ports", "base", "path"),
    [
        ({}, {"http": 8000}, "http://10.1.0.7:8000", "/metrics"),
        ({}, {"http": 8000, "metrics": 9000}, "http://10.1.0.7:9000", "/metrics"),
        ({}, {"": 8000}, "http://10.1.0.7:8000", "/metrics"),
        ({"prometheus.io/port": "7000"}, {"http": 8000}, "http://10.1.0.7:7000", "/metrics"),
        ({"prometheus.io/port": "7000", "prometheus.io/path": "/m"}, {}, "http://10.1.0.7:7000", "/m"),
        ({"prometheus.io/port": "7000", "pinchpoint.io/port": "7001"}, {}, "http://10.1.0.7:7001", "/metrics"),
        ({"prometheus.io/path": "/mesh", "pinchpoint.io/port": "7001"}, {}, "http://10.1.0.7:7001", "/metrics"),
        ({"pinchpoint.io/port": "api"}, {"http": 8000, "api": 8001}, "http://10.1.0.7:8001", "/metrics"),
        ({"pinchpoint.io/scheme": "https"}, {"http": 8000}, "https://10.1.0.7:8000", "/metrics"),
        ({"pinchpoint.io/path": "/a?b=c"}, {"http": 8000}, "http://10.1.0.7:8000", "/a?b=c"),
    ],
)
def test_where_it_is_asked(annotations: dict[str, str], ports: dict[str, int], base: str, path: str) -> None:
    (target,) = found(a_pod(annotations=annotations, ports=ports))
    assert (target.url, target.metrics_path) == (base, path)


def test_of_two_containers_with_a_port_of_one_name_the_first_is_asked() -> None:
    item = pod("chat-1", ports={"http": 8000})
    item["spec"]["containers"].append({"ports": [{"name": "http", "containerPort": 15020}]})
    with_sidecar = pod_in(item)
    assert with_sidecar is not None
    assert found(with_sidecar)[0].url == "http://10.1.0.7:8000"


def test_facts_and_kind_are_told_by_annotations_in_the_words_of_vllms_flags() -> None:
    told = {"kind": "vllm", "max-num-seqs": "64", "tensor_parallel_size": "2", "gpus": "0,1", "slo-ttft-seconds": "1"}
    (target,) = found(a_pod(annotations={f"pinchpoint.io/{key}": value for key, value in told.items()}))
    assert (target.facts.max_num_seqs, target.facts.tensor_parallel_size) == (64, 2)
    assert (target.facts.kind, target.gpus, target.slo.ttft_seconds) == ("vllm", ("0", "1"), 1.0)


def test_of_pods_with_one_name_the_oldest_bears_it() -> None:
    named = {"pinchpoint.io/engine": "chat"}
    old, new = (
        a_pod(name, annotations=named, created=f"2026-11-{day}T00:00:00Z") for name, day in (("b", 1), ("a", 2))
    )
    assert [target.engine for target in found(new, old)] == ["chat", "ml/a"]
    assert [target.engine for target in found(new)] == ["chat"]
    assert {target.labels["pod"] for target in found(new, old) if target.engine == "chat"} == {"b"}


@pytest.mark.parametrize("given", [{"phase": "Pending"}, {"phase": "Succeeded"}, {"ip": ""}, {"ip": "none"}])
def test_a_pod_that_does_not_run_or_has_no_address_is_nothing_to_speak_of(given: dict[str, str]) -> None:
    assert found(a_pod(**given)) == ()


@pytest.mark.parametrize(
    ("annotations", "ports", "words"),
    [
        ({"pinchpoint.io/scrape": "yes"}, {"http": 1}, ("scrape", "'yes'")),
        ({"pinchpoint.io/port": "99999"}, {"http": 1}, ("'99999'", "port")),
        ({"pinchpoint.io/port": "nil"}, {"http": 1}, ("'nil'", "port's name")),
        ({"pinchpoint.io/engine": "prod/chat"}, {"http": 1}, ("pinchpoint.io/engine",)),
        ({"pinchpoint.io/max-num-sequences": "1"}, {"http": 1}, ("pinchpoint.io/max_num_sequences",)),
        ({"pinchpoint.io/path": "metrics"}, {"http": 1}, ("metrics_path",)),
        ({"pinchpoint.io/scheme": "ftp"}, {"http": 1}, ("http",)),
        ({"pinchpoint.io/kind": "vlllm"}, {"http": 1}, ("kind",)),
        ({}, {}, ("no ports", "add pinchpoint.io/port")),
        ({}, {"a": 1, "b": 2}, ("2 ports", "metrics or http", "add pinchpoint.io/port")),
    ],
)
def test_a_pod_that_can_not_be_asked_is_named_with_cause_and_remedy(
    annotations: dict[str, str], ports: dict[str, int], words: tuple[str, ...]
) -> None:
    line = refused(a_pod(annotations=annotations, ports=ports))
    for word in ("pod ml/chat-1 ", *words):
        assert word in line
    assert "__pinchpoint" not in line


def test_a_bad_pod_among_good_ones_costs_only_itself() -> None:
    pods = [a_pod("chat-1"), a_pod("chat-2", ports={}), a_pod("chat-3")]
    targets, refused = engines_of(pods, LABELLED, found_by="kubernetes", build=build)
    assert [target.engine for target in targets] == ["ml/chat-1", "ml/chat-3"]
    assert len(refused) == 1
