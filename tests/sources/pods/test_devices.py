"""The decoder against Google's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.pods.devices import PodDevice, decode
from tests.fakes.kubelet import CLASSES

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
devices = st.tuples(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.5gb.shared", "cpu"]), st.lists(names))
containers = st.tuples(names, st.lists(devices, max_size=3), st.lists(st.integers(-(2**63), 2**63 - 1)))
pods = st.tuples(names, names, st.lists(containers, max_size=3))


@given(st.lists(pods, max_size=4))
def test_it_reads_what_googles_library_writes(node: list[tuple]) -> None:  # type: ignore[type-arg]
    response = CLASSES["ListPodResourcesResponse"]()
    expected = []
    for pod, namespace, in_it in node:
        entry = response.pod_resources.add(name=pod, namespace=namespace)
        for container, resources, cpus in in_it:
            member = entry.containers.add(name=container, cpu_ids=cpus)
            for resource, ids in resources:
                member.devices.add(resource_name=resource, device_ids=ids).topology.nodes.add(ID=1)
                if resource != "cpu":
                    expected += [PodDevice(device, namespace, pod, container) for device in ids]
    assert decode(response.SerializeToString()) == tuple(expected)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(answer: bytes) -> None:
    try:
        decode(answer)
    except ValueError:
        return


def test_fields_that_a_later_kubelet_adds_are_passed_over() -> None:
    numbers = bytes([0x78, 0x05, 0x79, *range(8), 0x7D, *range(4)])  # field 15 as varint, 64 and 32 bits
    device = b"\x0a\x0envidia.com/gpu" + numbers + b"\x12\x05GPU-1"
    container = numbers + b"\x0a\x01c" + b"\x12" + bytes([len(device)]) + device
    pod = b"\x0a\x01p\x12\x01n" + b"\x1a" + bytes([len(container)]) + container + numbers
    assert decode(numbers + b"\x0a" + bytes([len(pod)]) + pod) == (PodDevice("GPU-1", "n", "p", "c"),)


@pytest.mark.parametrize("cut", range(1, 20))
def test_an_answer_that_is_cut_is_an_error_or_shorter(cut: int) -> None:
    whole = CLASSES["ListPodResourcesResponse"]()
    whole.pod_resources.add(name="p" * 30, namespace="n")
    with pytest.raises(ValueError, match="longer"):
        decode(whole.SerializeToString()[:-cut])
