"""Xids that only the kernel log tells, over files and FIFOs that really grow."""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import GpuReading, Reason
from pinchpoint.sources.gpu import log_tail
from pinchpoint.sources.gpu.kernel_log import KernelLog, XidLine, parse
from pinchpoint.sources.gpu.xids import XidLedger
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import FAST, Watched

Watch = Callable[..., Watched]
XID_79 = "NVRM: Xid (PCI:0000:13:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
GPU_3 = GpuReading(gpu="3", uuid="GPU-3", at=0.0, pci_bus_id="00000000:13:00.0")


@pytest.mark.parametrize(
    ("line", "address", "code"),
    [
        (XID_79, "0000:13:00", 79),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.", "0000:3b:00", 79),
        ("NVRM: Xid (PCI:0000:01:00): 48, An uncorrectable double bit error", "0000:01:00", 48),
        ("NVRM: Xid (PCI:0000:05:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9).", "0000:05:00", 94),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 13, pid=9, name=a, Graphics", "0000:3b:00", 13),
        ("NVRM: Xid (0000:03:00): 59, 009c(2b1c) 00000000", "0000:03:00", 59),
        ("NVRM: Xid (03:00): 13, 0001 00000000", "0000:03:00", 13),
        ("NVRM: Xid (PCI:0008:01:00): 119, pid=1, name=x, Timeout after 6s of waiting for RPC", "0008:01:00", 119),
        ("NVRM: Xid (PCI:10de0:c1:00): 79, ", "10de0:c1:00", 79),
        ("NVRM: Xid (PCI:0000:DB:00): 154, GPU recovery action changed from 0x0 (None)", "0000:db:00", 154),
        (f"4,1234,5140900,-;{XID_79}", "0000:13:00", 79),
        (f"[Fri Aug 30 11:43:14 2024] {XID_79}", "0000:13:00", 79),
        (f"Nov 30 19:04:05 node-1 kernel: [  123.456789] {XID_79}", "0000:13:00", 79),
    ],
)
def test_a_line_is_understood_in_every_form(line: str, address: str, code: int) -> None:
    said = parse(line.encode())
    assert said is not None
    assert said[:2] == (address, code)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: GPU at PCI:0000:13:00: GPU-fa000003-0000-4000-8000-000000000003",
        "NVRM: Xid (PCI:0000:13:00)",
        "NVRM: Xid (PCI:0000:13:00): x79",
        "NVRM: Xid (PCI:nothing): 79",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
        f"12,1234,5140900,-;{XID_79}",  # facility 1: a program wrote it into /dev/kmsg
        "NVRM: Xid (PCI:0000:13:00): 123456, pid=1",
    ],
)
def test_any_other_line_is_none(line: str) -> None:
    assert parse(line.encode()) is None


def test_a_process_id_tells_two_faults_of_a_moment_apart() -> None:
    assert parse(b"NVRM: Xid (PCI:0000:13:00): 13, pid=41, name=a, x") == XidLine("0000:13:00", 13, b"41")
    assert parse(b"NVRM: Xid (PCI:0000:13:00): 13, pid='<unknown>', name=<unknown>, x") == XidLine(
        "0000:13:00", 13, b"<unknown>"
    )
    assert parse(b"NVRM: Xid (PCI:0000:13:00): 48, An error") == XidLine("0000:13:00", 48, b"")


class Log:
    """A kernel log that is followed, and what was counted."""

    def __init__(self, path: Path) -> None:
        self.path, self.ledger = path, XidLedger()
        self.ledger.know(GPU_3)
        self.log = KernelLog(path, self.ledger, time.monotonic)
        self.log.start()

    def write(self, *lines: str) -> None:
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def totals(self) -> dict[str, float]:
        return dict(self.ledger.onto(GPU_3, None).xid_errors_total)

    def until(self, what: Callable[[], object]) -> None:
        limit = time.monotonic() + 10
        while not what():
            assert time.monotonic() < limit, self.totals()
            time.sleep(0.01)


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Callable[[Path], Log]]:
    logs = []

    def start(path: Path) -> Log:
        logs.append(Log(path))
        logs[-1].until(lambda: logs[-1].log.following)
        return logs[-1]

    yield start
    for each in logs:
        each.log.end()
        each.until(lambda each=each: not each.log.following)


def test_a_file_that_grows_is_read_from_its_end(tmp_path: Path, follow: Callable[[Path], Log]) -> None:
    path = tmp_path / "kern.log"
    path.write_text(f"{XID_79}\n{XID_79.replace('79', '48', 1)}\n")
    log = follow(path)
    log.write("usb 1-1: new device", XID_79, "usb 1-1: gone")
    log.until(lambda: log.totals() == {"79": 1})
    with path.open("a") as file:  # a line in two pieces
        file.write("NVRM: Xid (PCI:0000:13:00): 11")
        file.flush()
        time.sleep(0.3)
        file.write("9, pid=1, name=x, Timeout\n")
    log.until(lambda: log.totals() == {"79": 1, "119": 1})


def test_a_rotated_file_is_followed_into_its_successor(tmp_path: Path, follow: Callable[[Path], Log]) -> None:
    path = tmp_path / "kern.log"
    path.write_text("before\n" * 100)
    log = follow(path)
    path.rename(tmp_path / "kern.log.1")
    log.write(XID_79)
    log.until(lambda: log.totals() == {"79": 1})
    path.write_text("")  # a rotation by copy
    time.sleep(2 * log_tail.LOOK_SECONDS)
    log.write("NVRM: Xid (PCI:0000:13:00): 48, An error")
    log.until(lambda: log.totals() == {"48": 1, "79": 1})


def test_a_fifo_is_read_over_many_writers(tmp_path: Path, follow: Callable[[Path], Log]) -> None:
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    log = follow(path)
    for number, code in enumerate((79, 119, 120), start=1):
        log.write(f"4,{number},{number}000000,-;NVRM: Xid (PCI:0000:13:00): {code}, pid=1, name=x, y", " SUBSYSTEM=pci")
        log.until(lambda number=number: len(log.totals()) == number)
    assert log.totals() == {"119": 1, "120": 1, "79": 1}
    cpu = time.process_time()
    time.sleep(0.5)  # nobody writes: no spin
    assert time.process_time() - cpu < 0.1


def test_the_many_lines_of_one_fault_are_one_error_and_another_process_is_another(
    tmp_path: Path, follow: Callable[[Path], Log]
) -> None:
    path = tmp_path / "kern.log"
    path.touch()
    log = follow(path)
    one = "NVRM: Xid (PCI:0000:13:00): 13, pid=41, name=a, Graphics SM Warp Exception on (GPC 0, TPC {}, SM 0)"
    log.write(*(one.format(number) for number in range(9)))
    log.write("NVRM: Xid (PCI:0000:13:00): 13, pid=42, name=b, Graphics Exception: ESR 0x57c730=0xc04000b")
    log.until(lambda: log.totals() == {"13": 2})
    time.sleep(0.3)
    assert log.totals() == {"13": 2}


def test_a_line_without_end_and_a_flood_take_neither_memory_nor_a_core(
    tmp_path: Path, follow: Callable[[Path], Log]
) -> None:
    path = tmp_path / "kern.log"
    path.touch()
    log = follow(path)
    with path.open("a") as file:
        file.write("x" * 5_000_000 + "\n")
    began, cpu = time.monotonic(), time.process_time()
    log.write(*["usb 1-1: noise, " * 20] * 5_000, XID_79)
    log.until(lambda: log.totals() == {"79": 1})
    assert time.process_time() - cpu < 0.5 * (time.monotonic() - began) + 0.2


def test_what_the_kernel_wrote_over_before_it_was_read_costs_only_that(
    tmp_path: Path, follow: Callable[[Path], Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /dev/kmsg answers an overrun: EPIPE once, then what is left."""
    path = tmp_path / "kern.log"
    path.touch()
    log = follow(path)
    overruns = iter([BrokenPipeError()])
    real = os.read

    def read(descriptor: int, size: int) -> bytes:
        if threading.current_thread().name == "kernel-log":
            for overrun in overruns:
                raise overrun
        return real(descriptor, size)

    monkeypatch.setattr(log_tail.os, "read", read)
    log.until(lambda: next(overruns, None) is None)
    log.write(XID_79)
    log.until(lambda: log.totals() == {"79": 1})


def test_a_log_that_was_asked_for_and_can_not_be_read_says_so_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        log = Log(tmp_path / "nowhere")
        log.until(lambda: log.log.absence)
    log.log.end()
    absence = log.log.absence
    assert absence is not None
    assert (absence.source, absence.reason) == ("gpu/kernel_log", Reason.NOT_SUPPORTED)
    assert str(tmp_path / "nowhere") in absence.detail
    assert [entry["event"] for entry in logs] == ["the kernel log can't be read"]


def test_a_log_that_nobody_asked_for_and_that_can_not_be_read_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinchpoint.sources.gpu.kernel_log.KMSG", tmp_path / "nowhere")
    with capture_logs() as logs:
        log = KernelLog(None, XidLedger(), time.monotonic)
        log.start()
        log._thread.join(5)
    assert not log._thread.is_alive()
    assert (log.following, log.absence, logs) == (False, None, [])


# --- together with the driver's events -------------------------------------------------------------------------------


@pytest.fixture
def kern_log(tmp_path: Path) -> Path:
    path = tmp_path / "kern.log"
    path.touch()
    return path


@pytest.fixture
def node(fake: FakeNvml, watch: Watch, kern_log: Path) -> Iterator[Watched]:
    node = watch(FAST.model_copy(update={"kernel_log": kern_log}))
    node.until(lambda: len(fake.calls("nvmlDeviceRegisterEvents")) == 8 and node.source._kernel_log.following)
    yield node
    node.source.stop()


def tell(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def sources(gpu: GpuReading) -> dict[tuple[str, str], float]:
    return {(count.xid, count.source): count.total for count in gpu.xids}


def test_an_xid_that_nvml_misses_is_counted_as_the_kernels(node: Watched, kern_log: Path) -> None:
    tell(kern_log, XID_79)
    node.until(lambda: node.gpu(3).xids)
    assert sources(node.gpu(3)) == {("79", "kernel"): 1}
    assert node.gpu(3).xid_errors_total == {"79": 1}


def test_an_error_that_both_tell_is_counted_once_for_whoever_was_first(
    fake: FakeNvml, node: Watched, kern_log: Path
) -> None:
    tell(kern_log, XID_79)
    node.until(lambda: node.gpu(3).xids)
    fake.event(3, 79)
    fake.event(3, 48)
    node.until(lambda: "48" in node.gpu(3).xid_errors_total)
    tell(kern_log, "NVRM: Xid (PCI:0000:13:00): 48, An error")
    tell(kern_log, "NVRM: Xid (PCI:0000:14:00): 48, An error")  # another GPU's
    node.until(lambda: node.gpu(4).xids)
    assert sources(node.gpu(3)) == {("48", "nvml"): 1, ("79", "kernel"): 1}
    assert sources(node.gpu(4)) == {("48", "kernel"): 1}


def test_while_the_kernel_log_is_read_no_xid_is_missed_for_want_of_events(
    fake: FakeNvml, watch: Watch, kern_log: Path
) -> None:
    fake.set("gpu 1 events -1")
    node = watch(FAST.model_copy(update={"kernel_log": kern_log}))
    node.until(lambda: {gpu for _, _, gpu in fake.calls("nvmlDeviceGetSupportedEventTypes")} == set(range(8)))
    time.sleep(0.2)
    assert "xid_errors_total" not in node.gpu(1).unavailable
    node.source.stop()


def test_an_xid_of_a_gpu_that_nvml_does_not_show_is_held_until_it_does(
    fake: FakeNvml, watch: Watch, kern_log: Path
) -> None:
    fake.set("gpus 7")
    node = watch(FAST.model_copy(update={"kernel_log": kern_log}), ready=False)
    node.until(lambda: node.all_up(7) and node.source._kernel_log.following)
    with capture_logs() as logs:
        tell(kern_log, "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.")
        node.until(lambda: logs)
    assert (logs[0]["gpu"], logs[0]["xid"]) == ("0000:17:00", "79")
    fake.set("gpus 8")
    node.until(node.all_up)
    assert sources(node.gpu(7)) == {("79", "kernel"): 1}
    node.source.stop()


def test_a_successor_that_may_not_be_read_has_the_old_file_closed_once(tmp_path: Path) -> None:
    """Closed twice, its number may be another thread's file by then."""
    path = tmp_path / "kern.log"
    path.touch()
    lines = log_tail.follow(path, threading.Event())
    next(lines)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(path))  # there, and can't be opened
        with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
            next(lines)
