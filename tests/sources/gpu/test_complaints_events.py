"""What users of other exporters complained of about Xid errors, and what happens here instead."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import GpuReading, GpuState, XidCount
from pinchpoint.sources.gpu.xids import KERNEL, MAX_CODES
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import FAST, Watched

Watch = Callable[..., Watched]
REGISTER = "nvmlDeviceRegisterEvents"
WAIT = "nvmlEventSetWait_v2"


@pytest.fixture
def watched(fake: FakeNvml, watch: Watch) -> Watched:
    """A node whose every GPU is registered."""
    node = watch()
    node.until(lambda: len(fake.calls(REGISTER)) == 8)
    return node


def counts(gpu: GpuReading) -> dict[tuple[str, str], float]:
    return {(count.xid, count.source): count.total for count in gpu.xids}


def test_the_first_xid_ever_is_one_with_its_time_and_no_code_is_made_up_before(
    fake: FakeNvml, watched: Watched
) -> None:
    assert all(gpu.xids == () and gpu.xid_errors_total == {} for gpu in watched.gpus())
    before = time.monotonic()
    fake.event(3, 79)
    watched.until(lambda: watched.gpu(3).xids)
    gpu = watched.gpu(3)
    (count,) = gpu.xids
    assert count == XidCount(xid="79", source="nvml", total=1, last_at=count.last_at)
    assert before <= count.last_at <= time.monotonic()
    assert gpu.xid_errors_total == {"79": 1}
    assert "xid_errors_total" not in gpu.unavailable
    assert not any(gpu.xids for gpu in watched.gpus() if gpu.gpu != "3")


def test_the_same_xid_twice_counts_two_and_its_time_moves_on(fake: FakeNvml, watched: Watched) -> None:
    fake.event(3, 31)
    watched.until(lambda: counts(watched.gpu(3)) == {("31", "nvml"): 1})
    first = watched.gpu(3).xids[0].last_at
    fake.event(3, 31)
    watched.until(lambda: counts(watched.gpu(3)) == {("31", "nvml"): 2})
    assert watched.gpu(3).xids[0].last_at > first


def test_every_xid_of_a_burst_over_all_gpus_is_counted(fake: FakeNvml, watched: Watched) -> None:
    with capture_logs() as logs:
        for number in range(200):
            fake.event(number % 8, (13, 43)[number % 16 // 8])
        watched.until(lambda: sum(sum(gpu.xid_errors_total.values()) for gpu in watched.gpus()) == 200)
    assert {tuple(gpu.xid_errors_total) for gpu in watched.gpus()} == {("13", "43")}
    told = [(entry["gpu"], entry["xid"]) for entry in logs if "Xid" in entry["event"]]
    assert len(told) == len(set(told)) == 16  # the first of a kind, and no more


def test_what_happened_before_the_start_is_not_told_again(fake: FakeNvml, watch: Watch) -> None:
    fake.event(2, 48)
    node = watch()
    node.until(lambda: len(fake.calls(REGISTER)) == 8)
    fake.event(2, 63)
    node.until(lambda: node.gpu(2).xids)
    assert counts(node.gpu(2)) == {("63", "nvml"): 1}


def test_a_persistent_error_of_the_wait_neither_spins_nor_floods_the_log_and_ends(
    fake: FakeNvml, watched: Watched
) -> None:
    retry = FAST.retry_seconds
    with capture_logs() as logs:
        fake.fault(WAIT, code=999)
        watched.until(lambda: watched.gpu(0).unavailable.get("xid_errors_total") == "driver_error")
        calls, cpu = len(fake.calls(WAIT)), time.process_time()
        time.sleep(8 * retry)
        assert len(fake.calls(WAIT)) - calls <= 10
        assert time.process_time() - cpu < 8 * retry / 2  # eight GPUs at 20 Hz are in it too
        assert fake.count("event_sets") <= 1
        fake.clear()
        watched.until(lambda: any("waited for again" in entry["event"] for entry in logs))
    events = [entry["event"] for entry in logs]
    assert events == [
        "the driver's events can't be waited for; it is tried again",
        "the driver's events are waited for again",
    ]
    assert all(gpu.up for gpu in watched.gpus())
    fake.event(5, 74)
    watched.until(lambda: watched.gpu(5).xid_errors_total == {"74": 1})


def test_a_wait_that_times_out_is_no_error(fake: FakeNvml, watched: Watched) -> None:
    with capture_logs() as logs:
        time.sleep(0.4)
    assert logs == []
    assert fake.count("event_sets") == 1
    assert len(fake.calls("nvmlEventSetCreate")) == 1


def test_the_xids_of_a_lost_gpu_stay_and_the_others_are_still_heard(fake: FakeNvml, watched: Watched) -> None:
    fake.event(3, 79)
    watched.until(lambda: watched.gpu(3).xids)
    fake.fault(gpu=3, code=15)
    watched.until(lambda: watched.gpu(3).state is GpuState.LOST)
    assert watched.gpu(3).xid_errors_total == {"79": 1}
    fake.event(4, 31)
    fake.event(3, 119)  # named by a handle that can't be asked any more
    watched.until(lambda: watched.gpu(4).xids and len(watched.gpu(3).xids) == 2)
    assert watched.gpu(3).xid_errors_total == {"119": 1, "79": 1}
    fake.clear()
    watched.until(watched.all_up)
    assert watched.gpu(3).xid_errors_total == {"119": 1, "79": 1}


def test_a_gpu_that_comes_back_from_a_reset_is_registered_anew(fake: FakeNvml, watched: Watched) -> None:
    fake.fault(gpu=3, code=16)
    watched.until(lambda: watched.gpu(3).state is GpuState.RESET_REQUIRED)
    time.sleep(0.15)  # a slice, in which the loss is seen
    registered = len(fake.calls(REGISTER, gpu=3))
    fake.clear()
    watched.until(watched.all_up)
    watched.until(lambda: len(fake.calls(REGISTER, gpu=3)) > registered)
    assert fake.count("event_sets") == 1
    fake.event(3, 63)
    watched.until(lambda: watched.gpu(3).xid_errors_total == {"63": 1})


def test_a_gpu_lost_in_the_wait_costs_the_others_no_more_than_a_back_off(fake: FakeNvml, watched: Watched) -> None:
    fake.fault(WAIT, code=15, times=2)
    watched.until(lambda: len(fake.calls("nvmlEventSetCreate")) == 3)
    waits = len(fake.calls(WAIT))
    watched.until(lambda: len(fake.calls(WAIT)) > waits)
    fake.event(6, 31)
    watched.until(lambda: watched.gpu(6).xids)


def test_a_gpu_that_is_unknown_at_the_registration_costs_the_others_nothing(fake: FakeNvml, watch: Watch) -> None:
    fake.fault(REGISTER, gpu=2, code=999)
    with capture_logs() as logs:
        node = watch()
        node.until(lambda: {gpu for _, _, gpu in fake.calls(REGISTER)} == set(range(8)))
        node.until(lambda: node.gpu(2).unavailable.get("xid_errors_total") == "driver_error")
    assert [entry["gpu"] for entry in logs] == ["2"]
    assert fake.count("event_sets") == 1  # the spoilt one was freed
    assert len(fake.calls(REGISTER, gpu=2)) == 1
    fake.event(7, 31)
    node.until(lambda: node.gpu(7).xids)
    assert "xid_errors_total" not in node.gpu(7).unavailable


def test_a_gpu_that_tells_no_xids_says_so(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 1 events -1", "gpu 2 events 1")
    node = watch()
    node.until(lambda: all("xid_errors_total" in node.gpu(index).unavailable for index in (1, 2)))
    assert {gpu.gpu: gpu.unavailable.get("xid_errors_total") for gpu in node.gpus()[:3]} == {
        "0": None,
        "1": "not_supported",
        "2": "not_supported",
    }


def test_a_gpu_that_hangs_at_its_first_call_does_not_hang_the_wait_for_the_others(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlDeviceGetHandleByIndex_v2", gpu=None, hang=True, times=1)  # of whichever comes first
    node = watch(ready=False)
    node.until(lambda: sum(gpu.up for gpu in node.gpus()) == 7)
    node.until(lambda: len(fake.calls(REGISTER)) == 7)
    healthy = next(int(gpu.gpu) for gpu in node.gpus() if gpu.up)
    fake.event(healthy, 31)
    node.until(lambda: node.gpu(healthy).xids)


def test_a_wait_that_hangs_delays_no_reading_and_is_no_quiet(fake: FakeNvml, watched: Watched) -> None:
    fake.fault(WAIT, hang=True)
    watched.until(lambda: watched.gpu(0).unavailable.get("xid_errors_total") == "hung")
    assert watched.next_cycle(0).up
    began = time.monotonic()
    watched.source.stop()
    assert time.monotonic() - began < 1


def test_other_news_of_the_driver_are_a_line_in_the_log_each(fake: FakeNvml, watch: Watch) -> None:
    fake.set(f"gpu * events {0x8 | 0x200 | 0x8000}")
    node = watch()
    node.until(lambda: len(fake.calls(REGISTER)) == 8)
    with capture_logs() as logs:
        fake.event(1, 0, kind=0x200)
        fake.event(1, 0, kind=0x200)
        fake.event(1, 1, kind=0x8000)
        node.until(lambda: len(logs) == 2)
        time.sleep(0.15)
    assert [entry["what"] for entry in logs] == [
        "a storm of correctable memory errors",
        "another recovery action is due",
    ]
    assert node.gpu(1).xids == ()


def test_codes_without_end_make_no_labels_without_end(fake: FakeNvml, watched: Watched) -> None:
    for code in range(1000, 1000 + 3 * MAX_CODES):
        fake.event(0, code)
    watched.until(lambda: sum(watched.gpu(0).xid_errors_total.values()) == 3 * MAX_CODES)
    totals = watched.gpu(0).xid_errors_total
    assert len(totals) == MAX_CODES + 1
    assert totals["other"] == 2 * MAX_CODES


def test_stop_frees_the_event_set_before_nvml_is_shut_down(fake: FakeNvml, watched: Watched) -> None:
    watched.source.stop()
    assert (fake.count("event_sets"), fake.init_count()) == (0, 0)
    order = [name for _, name, _ in fake.calls() if name in ("nvmlEventSetFree", "nvmlShutdown")]
    assert order == ["nvmlEventSetFree", "nvmlShutdown"]


def test_many_generations_leave_no_event_set_no_thread_and_no_file_open(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    files, running = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    for _ in range(5):
        fake.fault("nvmlDeviceGetPowerUsage", code=1)
        node.until(lambda: node.gpus() == ())
        fake.clear()
        node.until(node.all_up)
    assert (fake.count("event_sets"), fake.init_count()) == (1, 1)
    assert threading.active_count() == running
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 1


def test_nothing_is_ever_set_on_a_card_so_a_kill_leaves_nothing_behind(fake: FakeNvml, watched: Watched) -> None:
    watched.next_cycle(0)
    watched.source.stop()
    called = {name for _, name, _ in fake.calls()}
    reading = ("nvmlDeviceGet", "nvmlSystemGet", "nvmlEventSet", "nvmlGpm", "nvmlInit", "nvmlShutdown", "nvmlDeviceIs")
    assert {name for name in called if not name.startswith(reading)} == {REGISTER}


def test_an_error_before_anybody_asked_for_readings_is_counted_once_though_the_kernel_log_tells_it_too(
    fake: FakeNvml, watch: Watch
) -> None:
    node = watch(ready=False)
    node.until(lambda: len(fake.calls(REGISTER)) == 8)
    fake.event(3, 79)
    node.until(lambda: node.source._xids._counts)
    node.source._xids.tell("0000:13:00", 79, KERNEL, time.monotonic())
    assert counts(node.gpu(3)) == {("79", "nvml"): 1}
