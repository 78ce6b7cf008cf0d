"""Pods in the daemon: a join beside the GPUs' series, and whatever happens to the kubelet, those stay."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.kubelet import FakeKubelet, answer
from tests.fakes.nvml import FakeNvml

UUIDS = [f"GPU-fa00000{n}-0000-4000-8000-00000000000{n}" for n in range(2)]


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path, gpus=2)


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[FakeKubelet]:
    with FakeKubelet(tmp_path / "kubelet.sock").running() as kubelet:
        kubelet.answer = answer(chat=[("vllm", "nvidia.com/gpu", UUIDS)], batch=[("job", "nvidia.com/gpu", ["1::0"])])
        yield kubelet


@pytest.fixture
def daemon(tmp_path: Path, nvml: FakeNvml) -> Iterator[RunningDaemon]:
    config = tmp_path / "pinchpoint.yaml"
    config.write_text(
        "discovery: {loopback: false}\n"
        f"pods: {{socket: {tmp_path / 'kubelet.sock'}, interval_seconds: 1, timeout_seconds: 0.5}}\n"
    )
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        yield daemon


def gpus_up(daemon: RunningDaemon) -> list[float]:
    return daemon.series("pinchpoint_gpu_up")


def test_pods_are_a_join_of_their_own_so_that_the_gpus_series_keep_their_identity(
    kubelet: FakeKubelet, daemon: RunningDaemon
) -> None:
    daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_pod_info"), "pods")
    rows = [dict(labels) for labels in daemon.samples()["pinchpoint_gpu_pod_info"]]
    assert sorted((row["uuid"], row["namespace"], row["pod"], row["container"]) for row in rows) == [
        (UUIDS[0], "serving", "chat", "vllm"),
        (UUIDS[1], "serving", "batch", "job"),  # shared: several rows a GPU
        (UUIDS[1], "serving", "chat", "vllm"),
    ]
    others = {name for name, samples in daemon.samples().items() for labels in samples if "pod" in dict(labels)}
    assert others == {"pinchpoint_gpu_pod_info"}
    kubelet.answer = answer(chat=[("vllm", "nvidia.com/gpu", UUIDS[:1])])  # a pod has ended
    daemon.wait_for(lambda: len(daemon.series("pinchpoint_gpu_pod_info")) == 1, "the pod that ended to go")
    daemon.wait_for_series("pinchpoint_source_up", 1.0, source="pods")


def test_a_kubelet_that_hangs_costs_no_gpu_series_no_scrape_and_not_the_exit(
    kubelet: FakeKubelet, daemon: RunningDaemon
) -> None:
    kubelet.stuck = True
    daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="pods", reason="timeout")
    assert gpus_up(daemon) == [1.0, 1.0]
    assert daemon.series("pinchpoint_gpu_power_watts") == [120.0, 120.0]
    asked = kubelet.asked
    daemon.wait_for(lambda: kubelet.asked > asked, "the next question")
    started = time.monotonic()
    assert daemon.get("/metrics")
    assert time.monotonic() - started < 0.5
    seconds, code = daemon.terminate()
    assert (code, seconds < 2.0) == (0, True)


def test_whatever_the_kubelet_says_metrics_are_served(kubelet: FakeKubelet, daemon: RunningDaemon) -> None:
    def reason(wanted: str) -> None:
        daemon.wait_for(lambda: daemon.log.count(f"reason={wanted}") == 1, wanted)
        assert gpus_up(daemon) == [1.0, 1.0]

    daemon.wait_for_series("pinchpoint_source_up", 1.0, source="pods")
    kubelet.code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason("refused")
    kubelet.code, kubelet.answer = None, b"\xff" * 100
    reason("invalid")
    kubelet.answer = answer(chat=[("vllm", "nvidia.com/gpu", ["x" * (1 << 20)] * 17)])
    reason("too_large")
    daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="pods", reason="too_large")
    assert daemon.series("pinchpoint_gpu_pod_info") == []
    kubelet.answer = answer(chat=[("vllm", "nvidia.com/gpu", ["0"])])
    daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_pod_info", uuid=UUIDS[0]), "pods again")
    assert gpus_up(daemon) == [1.0, 1.0]


def test_where_there_is_no_kubelet_nothing_is_said_and_nothing_is_loaded(daemon: RunningDaemon, tmp_path: Path) -> None:
    daemon.wait_for(lambda: gpus_up(daemon) == [1.0, 1.0], "GPUs")
    assert daemon.series("pinchpoint_source_up", source="pods") == []
    assert daemon.series("pinchpoint_metric_unavailable", source="pods") == []
    assert "kubelet" not in daemon.log
    assert "cygrpc" not in Path(f"/proc/{daemon.process.pid}/maps").read_text()
    with ExitStack() as stack:  # it comes later: no restart is needed
        kubelet = stack.enter_context(FakeKubelet(tmp_path / "kubelet.sock").running())
        kubelet.answer = answer(chat=[("vllm", "nvidia.com/gpu", ["0"])])
        daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_pod_info", uuid=UUIDS[0]), "pods")
    daemon.wait_for(lambda: not daemon.series("pinchpoint_gpu_pod_info"), "the pods to go with the socket")
