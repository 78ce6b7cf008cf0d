"""What users of other exporters complain of, about links and profiles; each is a promise here."""

import time
from collections.abc import Callable

from pinchpoint.diagnosis.topology import learn_links, links_lost_since_start
from pinchpoint.outputs.catalog import CATALOG, Kind
from pinchpoint.snapshot import GpuReading, Reason
from pinchpoint.sources.gpu.gpm import STUCK_SECONDS
from tests.fakes.nvml import FakeNvml
from tests.fakes.nvml.scenarios import gb200_18_links, h100x8_nvswitch, l40s_x4_two_sockets
from tests.sources.gpu.conftest import FAST, Opened, Watched

Opening = Callable[..., Opened]
Watch = Callable[..., Watched]
MEDIUM = 15.0


def test_a_gb200_has_eighteen_links_whatever_the_index_after_them_answers(fake: FakeNvml, opened: Opening) -> None:
    gb200_18_links(fake)
    gpu = opened().read()
    assert [link.link for link in gpu.nvlinks] == [str(link) for link in range(18)]
    assert all(link.up for link in gpu.nvlinks)
    fake.set("gpu * field.91 -1")  # not even the count is told
    assert opened().read().nvlinks == gpu.nvlinks


def test_links_that_were_never_up_are_told_and_raise_no_alarm(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpu * nvlink 0")  # no bridge, or a fabric that nobody has set up
    gpu = opened().read()
    assert gpu.up
    assert [link.up for link in gpu.nvlinks] == [False] * 18
    assert links_lost_since_start(learn_links({}, [gpu]), [gpu]) == {}


def test_a_link_that_was_up_is_missed(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    one = opened()
    baseline = learn_links({}, [one.read()])
    fake.set("gpu 0 nvlink@4 0", "gpu 0 nvlink@11 0")
    assert links_lost_since_start(baseline, [one.read(MEDIUM)]) == {"0": ("4", "11")}


def test_nvlink_traffic_is_a_counter_of_bytes_not_a_rate_in_kilobytes(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    one = opened()
    totals = []
    for kibibytes in (10**9, 10**9 + 500, 10**9 + 500):
        fake.replace("gpu 0 field.138", f"gpu 0 field.138 {kibibytes}")
        totals.append(one.read(MEDIUM).nvlinks[0].transmit_bytes_total)
    assert totals == [10**9 * 1024, (10**9 + 500) * 1024, (10**9 + 500) * 1024]
    kinds = {metric.name: metric.kind for metric in CATALOG}
    for direction in ("receive", "transmit"):
        assert kinds[f"gpu_nvlink_link_{direction}_bytes_total"] is Kind.COUNTER
        assert kinds[f"gpu_nvlink_{direction}_bytes_total"] is Kind.COUNTER
        assert kinds[f"gpu_nvlink_{direction}_bytes_per_second"] is Kind.GAUGE


def test_pcie_traffic_is_a_rate_by_name_and_never_called_a_counter() -> None:
    traffic = [metric for metric in CATALOG if metric.name.startswith("gpu_pcie_") and "bytes" in metric.name]
    assert {metric.name for metric in traffic} == {
        "gpu_pcie_receive_bytes_per_second",
        "gpu_pcie_transmit_bytes_per_second",
    }
    assert {metric.kind for metric in traffic} == {Kind.GAUGE}


def test_profiling_counters_that_are_stuck_at_zero_are_flagged_not_believed(fake: FakeNvml, opened: Opening) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpm_shortest_ms 0", "gpu 0 util 100")  # and SM activity 0
    one = opened()
    gpu = one.read()
    while gpu.at < 1000 + STUCK_SECONDS + 3:
        gpu = one.read()
    assert gpu.utilization_ratio == 1.0
    assert gpu.profile_stuck is True
    one.read()
    gpu = one.read()
    assert (gpu.sm_active_ratio, gpu.unavailable["sm_active_ratio"]) == (None, Reason.INVALID)
    fake.set("gpu 0 gpm.2 97")
    gpu = one.read()
    assert (gpu.sm_active_ratio, gpu.profile_stuck) == (0.97, False)


def test_profiling_eight_gpus_at_once_is_one_call_at_a_time(fake: FakeNvml, watch: Watch) -> None:
    h100x8_nvswitch(fake)
    fake.fault("nvmlGpmSampleGet", sleep_ms=2)
    node = watch()
    node.until(lambda: all(gpu.sm_active_ratio is not None for gpu in node.gpus()))
    assert fake.count("gpm_overlaps") == 0
    assert fake.count("samples") == 16
    node.source.stop()
    node.until(lambda: fake.count("samples") == 0)


def test_a_gpu_that_hangs_in_profiling_costs_the_others_their_profile_and_nothing_else(
    fake: FakeNvml, watch: Watch
) -> None:
    h100x8_nvswitch(fake)
    node = watch()
    fake.fault("nvmlGpmSampleGet", gpu=2, hang=True)
    node.until(lambda: not node.gpu(2).up)
    others = [index for index in range(8) if index != 2]

    def fresh(gpu: GpuReading) -> bool:
        return gpu.up and gpu.power_watts == 71 and time.monotonic() - gpu.at < 0.5

    for index in others:
        gpu = node.next_cycle(index)
        assert fresh(gpu)
        assert gpu.unavailable["sm_active_ratio"] == Reason.TIMEOUT
    fake.clear()
    node.until(lambda: node.all_up() and all(gpu.sm_active_ratio is not None for gpu in node.gpus()))


def test_cards_without_nvlink_have_no_nvlink_series_and_no_alarm(fake: FakeNvml, watch: Watch) -> None:
    l40s_x4_two_sockets(fake)
    node = watch(FAST, ready=False)
    node.until(lambda: node.all_up(4))
    for gpu in node.gpus():
        assert gpu.nvlinks == ()
        assert (gpu.nvlink_receive_bytes_total, gpu.nvlink_receive_bytes_per_second) == (None, None)
    assert links_lost_since_start(learn_links({}, node.gpus()), node.gpus()) == {}
