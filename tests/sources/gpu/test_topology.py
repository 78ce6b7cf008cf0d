"""The matrix of ``nvidia-smi topo -m``, walked beside the readings."""

import time
from collections.abc import Callable
from itertools import combinations

from pinchpoint.snapshot import GpuState, PeerLink
from pinchpoint.sources.gpu.history import Remote
from tests.fakes.nvml import FakeNvml
from tests.fakes.nvml.scenarios import (
    gb200_18_links,
    h100x8_nvswitch,
    l40s_x4_two_sockets,
    t4_old_driver,
)
from tests.sources.gpu.conftest import FAST, Watched

Watch = Callable[..., Watched]
ANCESTOR = "nvmlDeviceGetTopologyCommonAncestor"


def known(node: Watched, gpus: int = 8) -> bool:
    return node.all_up(gpus) and len(node.source.links) == gpus * (gpus - 1) // 2


def word(node: Watched, gpu: int, peer: int) -> str | None:
    return next((link.link for link in node.source.links if (link.gpu, link.peer) == (str(gpu), str(peer))), None)


def started(watch: Watch, gpus: int) -> Watched:
    node = watch(FAST.model_copy(update={"medium_interval_seconds": 0.2}), ready=False)
    node.until(lambda: known(node, gpus))
    return node


def test_eight_gpus_on_nvswitches_are_all_nv18(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    node = started(watch, 8)
    pairs = [(str(one), str(other)) for one, other in combinations(range(8), 2)]
    assert node.source.links == tuple(PeerLink(one, other, "NV18", "ok") for one, other in pairs)
    assert node.source._site.history(node.gpu(0).uuid).remotes[5] == Remote("switch", "00000000:06:00.0")


def test_pcie_cards_on_two_sockets_have_the_words_of_nvidia_smi(fake: FakeNvml, watch: Watch) -> None:
    l40s_x4_two_sockets(fake)
    node = started(watch, 4)
    assert {(link.gpu + link.peer): (link.link, link.p2p) for link in node.source.links} == {
        "01": ("PIX", "ok"),
        "23": ("NODE", "ok"),
        **dict.fromkeys(("02", "03", "12", "13"), ("SYS", "chipset_not_supported")),
    }
    assert all(gpu.nvlinks == () and gpu.unavailable["nvlinks"] == "not_supported" for gpu in node.gpus())


def test_a_gb200_tray_is_nv18_throughout(fake: FakeNvml, watch: Watch) -> None:
    gb200_18_links(fake)
    assert {link.link for link in started(watch, 4).source.links} == {"NV18"}


def test_switches_that_nobody_names_are_counted_by_the_gpu(fake: FakeNvml, watch: Watch) -> None:
    gb200_18_links(fake)
    fake.miss("nvmlDeviceGetNvLinkRemoteDeviceType")
    assert {link.link for link in started(watch, 4).source.links} == {"NV18"}


def test_one_card_alone_has_no_links(fake: FakeNvml, watch: Watch) -> None:
    t4_old_driver(fake)
    node = watch(ready=False)
    node.until(lambda: node.all_up(1))
    assert node.source.links == ()
    assert fake.calls(ANCESTOR) == []


def test_bridges_between_two_cards_are_counted_by_the_address_at_their_other_end(fake: FakeNvml, watch: Watch) -> None:
    l40s_x4_two_sockets(fake)
    fake.set("gpu * nvlinks 4", "gpu * nvlink 1", "gpu * nvlink_type 0", "gpu * nvlink_pci 00000000:EE:00.0")
    fake.set(*(f"gpu 0 nvlink_pci@{link} 00000000:17:00.0" for link in (0, 1, 2)))
    fake.set(*(f"gpu 1 nvlink_pci@{link} 00000000:16:00.0" for link in (0, 1, 2)))
    node = started(watch, 4)
    assert [word(node, 0, peer) for peer in (1, 2, 3)] == ["NV3", "SYS", "SYS"]


def test_peer_access_must_hold_in_both_directions(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu 5 p2p.0@2 4", "gpu 6 p2p.0@7 6")
    p2p = {(link.gpu, link.peer): link.p2p for link in started(watch, 8).source.links}
    assert p2p.pop(("2", "5")) == "disabled_by_regkey"
    assert p2p.pop(("6", "7")) == ""  # NVML itself calls it unknown
    assert set(p2p.values()) == {"ok"}


def test_the_matrix_is_walked_once_and_no_reading_waits_for_it(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    fake.fault(ANCESTOR, sleep_ms=60)
    node = watch()
    began = time.monotonic()
    ages = []
    while not known(node):
        now = time.monotonic()
        ages += [now - gpu.at for gpu in node.gpus()]
        assert now - began < 10
        time.sleep(0.02)
    assert time.monotonic() - began > 0.5  # 28 pairs, one after the other
    assert max(ages) < 0.4
    walker = {thread for thread, _, _ in fake.calls(ANCESTOR)}
    readers = {thread for thread, _, _ in fake.calls("nvmlDeviceGetPowerUsage")}
    assert len(walker) == 1
    assert not walker & readers
    node.next_cycle(0)
    node.next_cycle(7)
    assert len(fake.calls(ANCESTOR)) == 28


def test_a_walk_that_hangs_keeps_nothing_else(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    fake.fault(ANCESTOR, gpu=4, hang=True)
    node = watch()
    node.until(lambda: node.source._generation.topology.hung(time.monotonic()))
    assert word(node, 4, 5) is None
    node.next_cycle(4)
    assert all(gpu.state is GpuState.OK for gpu in node.gpus())
    began = time.monotonic()
    node.source.stop()
    assert time.monotonic() - began < 1


def test_a_lost_gpu_costs_its_own_pairs_until_it_is_back(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    fake.fault(gpu=3, code=15)
    node = watch(ready=False)
    node.until(lambda: len(node.source.links) == 21)
    assert word(node, 0, 3) is None
    fake.clear()
    node.until(lambda: known(node))
    fake.fault(gpu=3, code=15)
    node.until(lambda: not node.gpu(3).up)
    assert word(node, 0, 3) == "NV18"  # how it is wired does not change with its loss


def test_a_link_that_goes_down_is_one_link_less(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    node = started(watch, 8)
    fake.set("gpu 2 nvlink@17 0")
    node.until(lambda: {word(node, 2, peer) for peer in (3, 4, 5, 6, 7)} == {"NV17"})
    assert word(node, 0, 1) == "NV18"
    node.until(lambda: node.gpu(2).nvlinks[17].up is False)
    assert node.gpu(2).nvlinks[17].remote == "switch"  # where it went is still known


def test_without_nvml_there_are_no_links(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    node = started(watch, 8)
    fake.fault(code=1)
    node.until(lambda: node.source.links == ())
    fake.clear()
    node.until(lambda: known(node))


def test_a_driver_that_knows_no_topology_is_asked_once_a_pair(fake: FakeNvml, watch: Watch) -> None:
    l40s_x4_two_sockets(fake)
    fake.miss(ANCESTOR)
    node = watch(FAST, ready=False)
    node.until(lambda: node.all_up(4))
    node.until(lambda: len(fake.calls("nvmlDeviceGetP2PStatus")) == 12)
    for index in range(4):
        node.next_cycle(index)
    assert len(fake.calls("nvmlDeviceGetP2PStatus")) == 12
    assert node.source.links == ()
