"""Processes on a GPU, and what users of other exporters had to say of theirs: each test is one such complaint."""

import gc
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pinchpoint.outputs.exposition import Renderer
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import GpuProcess, GpuReading, Reason, Snapshot
from pinchpoint.sources.gpu import GpuSettings
from tests.fakes.nvml import FakeNvml, scenarios
from tests.fakes.proc import A_CONTAINERS, FakeProc
from tests.outputs.exposition.scenes import empty_scene
from tests.sources.gpu.conftest import FAST, Opened, Watched

Open = Callable[..., Opened]
Watch = Callable[..., Watched]
ON = GpuSettings(processes=True)
MEDIUM = 15.0
POD = "6c1d4a3e-8f0b-4d55-9a3e-0123456789ab"
CONTAINER = "ab" * 32
LISTS = [f"nvmlDeviceGet{kind}RunningProcesses_v3" for kind in ("Compute", "Graphics", "MPSCompute")]


def unavailable(reading: GpuReading) -> dict[str, str]:
    """Of the processes."""
    return {field: reason for field, reason in reading.unavailable.items() if field.startswith("process")}


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def test_a_process_is_told_with_its_memory_its_share_its_command_container_and_pod(
    fake: FakeNvml, opened: Open, proc: FakeProc
) -> None:
    proc.add(4711, b"VLLM::EngineCor", cgroup=f"/kubepods/burstable/pod{POD}/{CONTAINER}")
    fake.set("gpu 0 proc 4711 70000000000 C 55")
    reading = opened(settings=ON, proc=proc.folder).read()
    assert reading.processes == (
        GpuProcess(
            pid=4711,
            kind="compute",
            memory_bytes=70e9,
            sm_ratio=0.55,
            command="VLLM::EngineCor",
            container=CONTAINER,
            pod_uid=POD,
        ),
    )
    assert reading.processes_seen == 1
    assert unavailable(reading) == {}


def test_only_the_ids_of_processes_are_asked_for_unless_somebody_wants_more(
    fake: FakeNvml, opened: Open, proc: FakeProc
) -> None:
    for pid in (4711, 4712, 4713):
        proc.add(pid)
    fake.set("gpu 0 proc 4712 70000000000 C 55", "gpu 0 proc 4711 1000000 M", "gpu 0 proc 4713 1000000 G")
    fake.set("gpu 0 proc 4714 1000000 C")  # it has ended
    reading = opened(settings=GpuSettings(), proc=proc.folder).read()
    assert (reading.processes, reading.processes_seen) == ((), None)
    assert reading.process_ids == (4711, 4712)  # those that draw serve nobody's requests
    asked = {call[1] for call in fake.calls() if "Process" in call[1]}
    assert asked == {LISTS[0], LISTS[2]}
    assert unavailable(reading) == {}


@pytest.mark.parametrize(("processes", "visible"), [(False, True), (None, False)])
def test_not_even_ids_are_asked_for_where_nobody_wants_them_or_they_are_other_processes(
    fake: FakeNvml, opened: Open, tmp_path: Path, processes: bool | None, visible: bool
) -> None:
    proc = FakeProc(tmp_path) if visible else FakeProc(tmp_path, A_CONTAINERS)
    fake.set("gpu 0 proc 1 70000000000 C 55")
    reading = opened(settings=GpuSettings(processes=processes), proc=proc.folder).read()
    assert reading.process_ids is None
    assert [call for call in fake.calls() if "Process" in call[1]] == []


def test_ids_that_the_driver_does_not_tell_are_unknown_and_no_complaint(
    fake: FakeNvml, opened: Open, proc: FakeProc
) -> None:
    fake.fault(LISTS[0], code=4)
    reading = opened(settings=GpuSettings(), proc=proc.folder).read()
    assert (reading.process_ids, unavailable(reading)) == (None, {})
    fake.clear()
    fake.set(f"gpu 0 proc {2**31} 1000000 C")
    assert opened(settings=GpuSettings(), proc=proc.folder).read().process_ids is None


def test_listing_them_is_slow_so_it_is_done_seldom(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 55")
    one = opened(settings=ON)
    for _ in range(int(MEDIUM) - 1):
        assert one.read(1.0).processes_seen == 1
    assert [len(fake.calls(function)) for function in LISTS] == [2, 1, 1]  # one that is not empty takes two
    one.read(MEDIUM)
    assert [len(fake.calls(function)) for function in LISTS] == [4, 2, 2]


def test_a_process_that_has_ended_leaves_nothing_behind(fake: FakeNvml, opened: Open, proc: FakeProc) -> None:
    for pid in (4711, 4712):
        proc.add(pid)
    fake.set("gpu 0 proc 4711 1000000 C 55", "gpu 0 proc 4712 1000000 C 55")
    one = opened(settings=ON, proc=proc.folder)
    assert [process.pid for process in one.read().processes] == [4711, 4712]
    fake.unset("gpu 0 proc 4711")
    assert [process.pid for process in one.read(MEDIUM).processes] == [4712]
    fake.unset("gpu 0 proc 4712")
    reading = one.read(MEDIUM)
    assert (reading.processes, reading.processes_seen) == ((), 0)


def test_a_dead_process_that_the_driver_still_lists_is_left_out(fake: FakeNvml, opened: Open, proc: FakeProc) -> None:
    proc.add(4711)
    fake.set("gpu 0 proc 4711 1000000 C 55", "gpu 0 proc 999999 1000000 C 55")
    reading = opened(settings=ON, proc=proc.folder).read()
    assert ([process.pid for process in reading.processes], reading.processes_seen) == ([4711], 1)


def test_the_processes_of_a_lost_gpu_are_gone_with_it(fake: FakeNvml, watch: Watch) -> None:
    fake.set(f"gpu 3 proc {os.getpid()} 1000000 C 55")
    node = watch(FAST.model_copy(update={"processes": True}))
    assert node.gpu(3).processes_seen == 1
    fake.fault(gpu=3, code=15)
    node.until(lambda: not node.gpu(3).up)
    assert (node.gpu(3).processes, node.gpu(3).processes_seen) == ((), None)


def test_of_very_many_the_largest_are_told_and_all_are_counted(fake: FakeNvml, opened: Open) -> None:
    fake.set(*(f"gpu 0 proc {pid} {pid << 20} C" for pid in range(1, 201)), "gpu 0 proc 500 -1 C")
    reading = opened(settings=GpuSettings(processes=True, max_processes=3)).read()
    assert [process.pid for process in reading.processes] == [198, 199, 200]
    assert reading.processes_seen == 201


def test_memory_that_the_driver_does_not_know_is_absent(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 -1 C 55", "gpu 0 proc 4712 1000000000000000 C 1")
    assert [process.memory_bytes for process in opened(settings=ON).read().processes] == [None, None]


def test_a_process_that_computes_and_draws_is_one_and_its_memory_counts_once(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 55", "gpu 0 proc 4711 1000000 G 55", "gpu 0 proc 4712 5 M 1")
    reading = opened(settings=ON).read()
    assert [(process.kind, process.memory_bytes) for process in reading.processes] == [
        ("compute+graphics", 1000000),
        ("mps", 5),
    ]
    assert reading.processes_seen == 2


@pytest.mark.parametrize("pid", [0, 4194305, 0x40000000, 0xFFFFFFFF])
def test_a_list_of_another_struct_is_dropped_whole_and_counted(fake: FakeNvml, opened: Open, pid: int) -> None:
    """As by drivers 535.43 to 535.86: from the second entry on, a process id is a piece of something else."""
    fake.set("gpu 0 proc 4711 1000000 C 55", f"gpu 0 proc {pid} 4712 C 55")
    reading = opened(settings=ON).read()
    assert (reading.processes, reading.processes_seen) == ((), None)
    assert reading.unavailable["processes"] == Reason.INVALID
    assert reading.invalid_samples_total["processes"] == 1
    assert reading.power_watts == 120


def test_in_a_container_a_pid_is_the_hosts_and_gets_no_name_of_somebody_else(
    fake: FakeNvml, opened: Open, tmp_path: Path
) -> None:
    ours = FakeProc(tmp_path, A_CONTAINERS)
    ours.add(17, b"somebody-else")
    fake.set("gpu 0 proc 17 1000000 C 55", "gpu 0 proc 4711 1000000 C 55")  # 4711 is not in our /proc
    reading = opened(settings=ON, proc=ours.folder).read()
    assert [(process.pid, process.command) for process in reading.processes] == [(17, None), (4711, None)]
    assert unavailable(reading) == {"process_info.command": Reason.FOREIGN_PIDS}


def test_a_process_at_rest_has_no_share_and_junk_rows_are_dropped(fake: FakeNvml, opened: Open) -> None:
    """The driver lists who was busy, and some list a hundred rows of nobody."""
    fake.set("gpu 0 proc 4711 1000000 C 0", "gpu 0 proc 4712 1000000 C 808334905")
    fake.set("gpu 0 proc 4713 1000000 C 25", *(f"gpu 0 proc {pid} 1 X 50" for pid in range(9000, 9100)))
    reading = opened(settings=ON).read()
    assert {process.pid: process.sm_ratio for process in reading.processes} == {4711: 0, 4712: 0, 4713: 0.25}
    assert reading.processes_seen == 3


def test_shares_are_asked_for_since_the_last_sample(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 40")
    one = opened(settings=ON)
    assert one.read().processes[0].sm_ratio == 0.4
    fake.replace("gpu 0 proc", "gpu 0 proc 4711 1000000 C 0")
    assert one.read(MEDIUM).processes[0].sm_ratio == 0


@pytest.mark.parametrize("code", [0, 6])
def test_no_sample_and_no_process_are_no_error(fake: FakeNvml, opened: Open, code: int) -> None:
    fake.fault("nvmlDeviceGetProcessUtilization", code=code or None)
    reading = opened(settings=ON).read()
    assert (reading.processes, reading.processes_seen) == ((), 0)
    assert unavailable(reading) == {"process_info.command": Reason.FOREIGN_PIDS}


def test_shares_that_can_not_be_told_are_absent_and_not_nought(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 40")
    fake.fault("nvmlDeviceGetProcessUtilization", code=3)
    one = opened(settings=ON)
    for _ in range(3):
        reading = one.read(MEDIUM)
    assert reading.processes[0].sm_ratio is None
    assert reading.unavailable["process_sm_ratio"] == Reason.NOT_SUPPORTED
    assert len(fake.calls("nvmlDeviceGetProcessUtilization")) == 1


def test_a_list_that_grows_while_it_is_read_is_read_again(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 40")
    fake.fault(LISTS[0], code=7, after=1, times=1)
    assert opened(settings=ON).read().processes_seen == 1


def test_a_list_that_always_grows_is_absent_rather_than_wrong(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 proc 4711 1000000 C 40", "gpu 0 proc 4712 1000000 G 40")
    fake.fault(LISTS[0], code=7)
    one = opened(settings=ON)
    reading = one.read()
    assert (reading.processes, reading.processes_seen) == ((), None)
    assert reading.unavailable["processes"] == Reason.DRIVER_ERROR
    fake.clear()
    assert one.read(MEDIUM).processes_seen == 2


def test_an_older_driver_is_asked_by_the_older_name(fake: FakeNvml, opened: Open) -> None:
    scenarios.t4_old_driver(fake)
    fake.set("gpu 0 proc 4711 1000000 C 40")
    one = opened(settings=ON)
    for _ in range(3):
        assert one.read(MEDIUM).processes[0].memory_bytes == 1000000
    assert len(fake.calls(LISTS[0])) == 1


def test_a_split_card_that_trusts_us_not_is_asked_instance_by_instance(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    fake.set("gpu 0 proc 4711 1000000 C 0 0 7 0", "gpu 0 proc 4712 2000000 C 0 0 9 0")
    one = opened(settings=ON)
    expected = [(4711, "7"), (4712, "9")]
    assert [(process.pid, process.mig_instance) for process in one.read().processes] == expected
    handle = "nvmlDeviceGetComputeRunningProcesses_v3"
    fake.fault(handle, code=4, times=1)  # the card refuses, its instances don't
    reading = one.read(MEDIUM)
    assert [(process.pid, process.mig_instance) for process in reading.processes] == expected
    assert reading.processes[0].sm_ratio is None  # not in MIG


def test_a_thousand_processes_that_come_and_go_hold_no_memory(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.thousand_pids(fake)
    fake.load(log=False)
    gpus = [opened(index, ON) for index in range(8)]

    def cycle() -> list[GpuReading]:
        node.step()
        readings = [gpu.read(MEDIUM) for gpu in gpus]
        told = {process.pid for reading in readings for process in reading.processes}
        assert len(told) == 8 * 64
        assert told <= set(node.pids())
        assert [reading.processes_seen for reading in readings] == [125] * 8
        return readings

    for _ in range(10):
        cycle()
    gc.collect()
    process, objects = psutil.Process(), len(gc.get_objects())
    before = process.memory_info().rss
    for _ in range(25):
        cycle()
    gc.collect()
    assert process.memory_info().rss - before < 2 << 20
    assert len(gc.get_objects()) - objects < 1000


def test_a_hang_of_the_list_is_that_gpus_alone(fake: FakeNvml, watch: Watch) -> None:
    settings = FAST.model_copy(update={"processes": True, "medium_interval_seconds": 0.05})
    node = watch(settings)
    fake.fault(LISTS[0], gpu=3, hang=True)
    node.until(lambda: "RunningProcesses" in node.gpu(3).detail)
    assert not node.gpu(3).up
    asked = time.monotonic()
    node.until(lambda: all(gpu.at > asked for gpu in node.gpus() if gpu.gpu != "3"), 2)
    assert threading.active_count() < 20


def test_no_name_of_a_process_breaks_the_exposition(fake: FakeNvml, opened: Open, proc: FakeProc) -> None:
    names = [b'a"b', b"back\\slash", b"new\nline", b"{x=1}", "\u2028é".encode(), b"#", b"\x00", b"\xff\xed\xa0\x80"]
    for pid, name in enumerate(names, 4711):
        proc.add(pid, name)
        fake.set(f"gpu 0 proc {pid} 1000000 C 55")
    reading = opened(settings=ON, proc=proc.folder).read()
    told = {str(process.pid): process.command or "" for process in reading.processes}
    text, openmetrics = Renderer().render(scene(reading))
    for parse, rendered in ((parse_text, text), (parse_openmetrics, openmetrics)):
        samples = [sample for family in parse(rendered.plain.decode()) for sample in family.samples]
        shown = [s.labels for s in samples if s.name == "pinchpoint_gpu_process_info"]
        assert {labels["pid"]: labels["command"] for labels in shown} == told


def test_what_changes_is_a_value_and_the_labels_are_who_it_is(fake: FakeNvml, opened: Open, proc: FakeProc) -> None:
    for pid in range(4711, 4721):
        proc.add(pid)
        fake.set(f"gpu 0 proc {pid} 1000000 C 55")
    one = opened(settings=GpuSettings(processes=True, max_processes=4), proc=proc.folder)

    def series() -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        families = parse_text(Renderer().render(scene(one.read(MEDIUM)))[0].plain.decode())
        every = [sample for family in families for sample in family.samples if "gpu_process_" in sample.name]
        return {(sample.name, tuple(sample.labels.items())) for sample in every}

    before = series()
    assert len(before) == 4 * 3  # capped: info, memory, share
    for pid in range(4711, 4715):
        fake.replace(f"gpu 0 proc {pid}", f"gpu 0 proc {pid} 2000000 C 77")
    assert series() == before


def scene(reading: GpuReading) -> Scene:
    return replace(empty_scene(), snapshot=Snapshot(at=reading.at, gpus=(reading,)))
