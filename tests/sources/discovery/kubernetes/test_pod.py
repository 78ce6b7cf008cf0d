"""What is kept of an API object: little, whatever it is."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.discovery.kubernetes.pod import Pod, pod_in, version_in
from tests.fakes.kubernetes_api import pod

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_a_pod_is_cut_down_to_what_discovery_needs() -> None:
    item = pod("chat-1", annotations={"pinchpoint.io/scrape": "true", "other/notes": "x" * 10**6})
    assert pod_in(item) == Pod(
        namespace="ml",
        name="chat-1",
        node="node-a",
        ip="10.1.0.7",
        created="2026-11-30T12:00:00Z",
        running=True,
        ready=True,
        annotations={"pinchpoint.io/scrape": "true"},
        ports=(("http", 8000),),
    )


def test_annotations_and_ports_without_end_are_cut_off() -> None:
    huge = {f"pinchpoint.io/{number}": "x" * 4096 for number in range(1000)} | {"pinchpoint.io/0": "x" * 10**6}
    found = pod_in(pod("chat-1", annotations=huge, ports={f"p{number}": number for number in range(1, 60_000)}))
    assert found is not None
    assert len(found.annotations) <= 64
    assert len(found.ports) == 64
    assert sum(map(sys.getsizeof, found.annotations.values())) < 300_000


def test_a_sidecar_that_is_an_init_container_and_udp_ports() -> None:
    item = pod("chat-1", ports={})
    item["spec"]["initContainers"] = [{"ports": [{"name": "metrics", "containerPort": 9}]}]
    item["spec"]["containers"][0]["ports"] = [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]
    found = pod_in(item)
    assert found is not None
    assert found.ports == (("metrics", 9),)


@given(odd=JSON, where=st.lists(st.sampled_from(["metadata", "spec", "status", "annotations", "containers", "ports"])))
def test_an_object_of_any_shape_is_a_pod_or_none_and_never_an_error(odd: object, where: list[str]) -> None:
    item: object = odd
    for key in reversed(where):
        item = {key: item, "name": "a", "namespace": "b"}
    pod_in(item)
    pod_in({**pod("chat-1"), "spec": odd})
    pod_in({**pod("chat-1"), "status": odd})
    assert isinstance(version_in(item), str)


def test_an_object_without_a_name_is_no_pod() -> None:
    item = pod("chat-1")
    del item["metadata"]["name"]
    assert pod_in(item) is None
