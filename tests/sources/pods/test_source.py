"""The kubelet's answer, its refusals and its absence. The kubelet is a real gRPC server on a real socket."""

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import psutil
import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import Absence, Reason
from pinchpoint.sources.pods import PodDevice, PodSettings, PodSource, PodsReading
from tests.fakes.kubelet import FakeKubelet, answer

PATIENT = 5.0
IMPATIENT = 0.3


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[FakeKubelet]:
    with FakeKubelet(tmp_path / "kubelet 100%.sock").running() as kubelet:
        yield kubelet


def source(socket: Path, timeout_seconds: float = PATIENT) -> PodSource:
    return PodSource(PodSettings(socket=socket, timeout_seconds=timeout_seconds), time.monotonic)


async def reason(source: PodSource) -> Reason:
    absence = await source.read()
    assert isinstance(absence, Absence)
    assert absence.source == "pods"
    assert "\n" not in absence.detail
    return absence.reason


async def test_the_gpus_of_each_container_are_read(kubelet: FakeKubelet) -> None:
    kubelet.answer = answer(
        chat=[("vllm", "nvidia.com/gpu", ["GPU-1", "GPU-2"]), ("sidecar", "example.com/nic", ["eth1"])],
        small=[("vllm", "nvidia.com/mig-1g.10gb", ["MIG-7"])],
        web=[("nginx", "cpu", [])],
    )
    before = time.monotonic()
    reading = await source(kubelet.socket).read()
    assert isinstance(reading, PodsReading)
    assert before <= reading.at <= time.monotonic()
    assert reading.devices == (
        PodDevice("GPU-1", "serving", "chat", "vllm"),
        PodDevice("GPU-2", "serving", "chat", "vllm"),
        PodDevice("MIG-7", "serving", "small", "vllm"),
    )


async def test_no_pod_with_a_gpu_is_an_answer_too(kubelet: FakeKubelet) -> None:
    reading = await source(kubelet.socket).read()
    assert isinstance(reading, PodsReading)
    assert reading.devices == ()


async def test_an_answer_of_more_than_four_mebibytes_is_read(kubelet: FakeKubelet) -> None:
    nic = [f"{number:0100}" for number in range(50_000)]
    kubelet.answer = answer(busy=[("a", "example.com/nic", nic)], chat=[("vllm", "nvidia.com/gpu", ["GPU-1"])])
    assert len(kubelet.answer) > 4 << 20
    reading = await source(kubelet.socket).read()
    assert isinstance(reading, PodsReading)
    assert [device.device_id for device in reading.devices] == ["GPU-1"]


async def test_an_answer_without_end_is_refused(kubelet: FakeKubelet) -> None:
    kubelet.answer = answer(busy=[("a", "nvidia.com/gpu", ["x" * (1 << 20)] * 17)])
    assert await reason(source(kubelet.socket)) is Reason.TOO_LARGE


async def test_an_answer_with_endless_devices_is_cut(kubelet: FakeKubelet) -> None:
    kubelet.answer = answer(busy=[("a", "nvidia.com/gpu", [f"GPU-{n}" for n in range(10_000)])])
    reading = await source(kubelet.socket).read()
    assert isinstance(reading, PodsReading)
    assert len(reading.devices) == 4096


async def test_where_there_is_no_socket_there_is_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with capture_logs() as lines:
        assert await source(tmp_path / "nothing.sock").read() is None
        assert await source(tmp_path / "file").read() is None
        assert await source(tmp_path / "file/kubelet.sock").read() is None
    assert lines == []


async def test_a_kubelet_that_hangs_is_given_up_at_the_deadline(kubelet: FakeKubelet) -> None:
    kubelet.stuck = True
    started = time.monotonic()
    assert await reason(source(kubelet.socket, IMPATIENT)) is Reason.TIMEOUT
    assert IMPATIENT * 0.9 < time.monotonic() - started < IMPATIENT + 1


async def test_a_question_under_way_can_be_cancelled(kubelet: FakeKubelet) -> None:
    kubelet.stuck = True
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(source(kubelet.socket, 60).read(), IMPATIENT)
    assert time.monotonic() - started < IMPATIENT + 1


async def test_the_event_loop_goes_on_meanwhile(kubelet: FakeKubelet) -> None:
    kubelet.stuck = True
    await reason(source(kubelet.socket, 0.1))  # the library is loaded
    question = asyncio.create_task(source(kubelet.socket, IMPATIENT).read())
    longest, last = 0.0, time.monotonic()
    while not question.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 0.2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, Reason.NOT_SUPPORTED),
        (grpc.StatusCode.PERMISSION_DENIED, Reason.ACCESS_DENIED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Reason.REFUSED),  # its limit of questions a second
        (grpc.StatusCode.INTERNAL, Reason.REFUSED),
    ],
)
async def test_a_refusal_has_its_reason(kubelet: FakeKubelet, code: grpc.StatusCode, expected: Reason) -> None:
    kubelet.code = code
    assert await reason(source(kubelet.socket)) is expected


async def test_a_socket_that_nobody_listens_on_is_refused(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), socket)
    server.close()
    await server.wait_closed()
    assert socket.is_socket()
    assert await reason(source(socket)) is Reason.CONNECT_REFUSED


@contextmanager
def nobody() -> Iterator[None]:
    """Root may open everything, so it is somebody else for a moment."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("closed", ["socket", "folder"])
async def test_a_socket_that_may_not_be_opened_is_access_denied(kubelet: FakeKubelet, closed: str) -> None:
    with TemporaryDirectory() as folder:
        socket = Path(folder) / "kubelet.sock"
        kubelet.socket.rename(socket)
        socket.chmod(0)
        Path(folder).chmod(0o755 if closed == "socket" else 0)
        with nobody():
            absence = await source(socket).read()
        Path(folder).chmod(0o755)
    assert isinstance(absence, Absence)
    assert absence.reason is Reason.ACCESS_DENIED
    assert kubelet.asked == 0


@pytest.mark.parametrize("chatter", [b"HTTP/1.1 200 OK\r\n\r\n", b"\0" * 4096, b""])
async def test_a_stranger_on_the_socket_is_no_kubelet(tmp_path: Path, chatter: bytes) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(chatter)
        writer.close()

    async with await asyncio.start_unix_server(talk, tmp_path / "kubelet.sock"):
        assert await reason(source(tmp_path / "kubelet.sock", 1.0)) in (Reason.CONNECT_REFUSED, Reason.TIMEOUT)


@pytest.mark.parametrize("garbage", [b"\xff" * 50, b"\x0a\x7f\x01", b"\x0b", b"\x0a\x06\x12\x01\xff\x1a\x01a"])
async def test_an_answer_that_is_no_such_message_is_invalid(kubelet: FakeKubelet, garbage: bytes) -> None:
    kubelet.answer = garbage
    assert await reason(source(kubelet.socket)) is Reason.INVALID


async def test_a_kubelet_that_is_back_is_read_again_and_each_change_is_logged_once(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    pods = source(socket)
    with capture_logs() as lines:
        with FakeKubelet(socket).running() as kubelet:
            await pods.read()
            kubelet.code = grpc.StatusCode.INTERNAL
            await pods.read()
            await pods.read()
        with FakeKubelet(socket).running():  # restarted: another socket of the same name
            assert isinstance(await pods.read(), PodsReading)
            await pods.read()
    assert [line["log_level"] for line in lines] == ["warning", "info"]


async def test_the_library_prints_nothing_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    await test_a_socket_that_nobody_listens_on_is_refused(tmp_path)
    assert capfd.readouterr().err == ""
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_server_written_in_go_finds_an_authority_that_it_accepts(kubelet: FakeKubelet) -> None:
    """Go's HTTP/2 refuses a path, percent-encoded, as a host's name."""
    await source(kubelet.socket).read()
    assert kubelet.authority == "localhost"


async def test_many_questions_leave_nothing_behind(kubelet: FakeKubelet) -> None:
    kubelet.answer = answer(busy=[("a", "example.com/nic", ["x" * 1000] * 1000)])
    pods, process = source(kubelet.socket), psutil.Process()

    async def ask(times: int) -> None:
        for _ in range(times):
            assert isinstance(await pods.read(), PodsReading)

    await ask(50)
    before = process.memory_info().rss, process.num_fds(), process.num_threads()
    await ask(150)
    after = process.memory_info().rss, process.num_fds(), process.num_threads()
    assert after[0] - before[0] < 4 << 20
    assert after[1] <= before[1] + 2
    assert after[2] <= before[2] + 2
