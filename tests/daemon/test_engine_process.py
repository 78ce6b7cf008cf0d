"""An engine on this host in the daemon: its process is found, its facts, its GPUs, and a verdict that knows both."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.engine_process import EngineProcess
from tests.fakes.nvml import FakeNvml

REAL = Path("tests/data/vllm-real/c-moderate/010.prom")
DATA_PARALLEL = Path("tests/data/engine-metrics/vllm-0.33.0-v1-dp2-spec-kvmetrics.prom")
CORES = ["VLLM::EngineCore_DP0", "VLLM::EngineCore_DP1"]
UUIDS = [f"GPU-fa00000{n}-0000-4000-8000-00000000000{n}" for n in range(4)]


def busy(folder: Path, *, running: int, waiting: int) -> Path:
    """The real exposition, of an engine with so many requests and a KV cache with room, whose counters move."""
    text = REAL.read_text()
    changes = {
        "num_requests_running{": running,
        "num_requests_waiting{": waiting,
        'num_requests_waiting_by_reason{.*reason="capacity"': waiting,
        "kv_cache_usage_perc{": 0.3,
        "generation_tokens_total{": "{{900}}",
        "prompt_tokens_total{": "{{100}}",
    }
    for name, value in changes.items():
        text, found = re.subn(rf"^(vllm:{name}[^}}]*\}}) .*$", rf"\g<1> {value}", text, flags=re.MULTILINE)
        assert found == 1, name
    file = folder / "busy.prom"
    file.write_text(text)
    return file


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path, gpus=4)


@contextmanager
def watching(
    engine: EngineProcess, folder: Path, nvml: FakeNvml, processes: str = "interval_seconds: 1"
) -> Iterator[RunningDaemon]:
    """Not found by itself: on a machine of several people there are other engines on loopback."""
    config = folder / "pinchpoint.yaml"
    config.write_text(
        "gpu: {interval_seconds: 0.5, medium_interval_seconds: 1}\n"
        f"engines: {{interval_seconds: 1, timeout_seconds: 0.9, targets: [{{name: chat, url: '{engine.url}'}}]}}\n"
        f"processes: {{{processes}}}\n"
        "host: {interval_seconds: 1}\n"
    )
    with RunningDaemon(folder, "--config.file", str(config), env=nvml.env()) as daemon:
        yield daemon


def gpus_of(daemon: RunningDaemon) -> list[tuple[str, str, str]]:
    """Replica, index and UUID."""
    rows = [dict(labels) for labels in daemon.samples().get("pinchpoint_engine_gpu_info", {})]
    return sorted((row["replica"], row["gpu"], row["uuid"]) for row in rows)


def chat(daemon: RunningDaemon) -> dict[str, Any]:
    """The engine, as the status tells of it."""
    (engine,) = json.loads(daemon.get("/api/v1/status"))["engines"]
    return dict(engine)


def test_an_engine_has_the_facts_of_its_command_line_its_log_and_its_models_and_the_verdict_rests_on_them(
    tmp_path: Path, nvml: FakeNvml
) -> None:
    words = ("--max-num-seqs", "24", "-tp", "2", "--api-key", "s3cret")
    body = busy(tmp_path, running=24, waiting=30)
    with EngineProcess(tmp_path, *words, body=body, children=["VLLM::EngineCore"]) as engine:
        nvml.set(f"gpu 2 proc {engine.child('VLLM::EngineCore')} 70000000000")
        with watching(engine, tmp_path, nvml) as daemon:
            daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 24.0, engine="chat")
            daemon.wait_for(lambda: gpus_of(daemon) == [("0", "2", UUIDS[2])], "its GPU")
            origins = daemon.samples()["pinchpoint_engine_fact_origin_info"]
            assert {
                ("max_num_seqs", "command_line"), ("tensor_parallel_size", "command_line"), ("max_model_len", "models"),
                ("kv_cache_capacity_tokens", "log"), ("enable_prefix_caching", "metrics"), ("gpu_name", "nvml"),
            } <= {(dict(key)["fact"], dict(key)["origin"]) for key in origins}  # fmt: skip
            daemon.wait_for(lambda: chat(daemon).get("class") == "scheduler", "the verdict", 40)
            told = chat(daemon)
            assert "all 24 batch slots (max_num_seqs, from its command line) are taken" in told["why"]
            assert told["facts"]["max_num_seqs"] == {"value": 24, "origin": "command_line"}
            assert told["gpus"] == ["2"]
            assert "s3cret" not in (daemon.get("/metrics") + daemon.get("/api/v1/status")).decode() + daemon.log
            daemon.wait_for_series("pinchpoint_source_up", 1.0, source="process")


def test_each_replica_has_the_gpus_of_its_rank_and_a_stranger_beside_it_is_named(
    tmp_path: Path, nvml: FakeNvml
) -> None:
    with (
        EngineProcess(tmp_path, "-dp", "2", body=DATA_PARALLEL, children=CORES) as engine,
        watching(engine, tmp_path, nvml) as daemon,
    ):
        first, second = (engine.child(title) for title in CORES)
        on_gpus = {0: [first], 1: [first], 3: [second, daemon.process.pid]}
        nvml.set(*(f"gpu {gpu} proc {pid} 1000000" for gpu, pids in on_gpus.items() for pid in pids))
        expected = [("0", "0", UUIDS[0]), ("0", "1", UUIDS[1]), ("1", "3", UUIDS[3])]
        daemon.wait_for(lambda: gpus_of(daemon) == expected, "the GPUs of both replicas")
        sharer = f"GPU 3 is shared with process {daemon.process.pid}"
        daemon.wait_for(lambda: sharer in chat(daemon).get("warnings", ()), "the warning")
        nvml.fault(gpu=3, code=15)  # lost: it lists no process any more, and still is the engine's
        daemon.wait_for_series("pinchpoint_gpu_up", 0.0, gpu="3")
        daemon.wait_for(lambda: chat(daemon).get("class") == "hardware", "the lost GPU to be the engine's")
        assert gpus_of(daemon) == expected


def test_a_restarted_engine_is_looked_at_at_once(tmp_path: Path, nvml: FakeNvml) -> None:
    engine = EngineProcess(tmp_path, "--max-num-seqs", "8", body=REAL)
    with watching(engine, tmp_path, nvml, "interval_seconds: 3600") as daemon:
        with engine:
            daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 8.0, engine="chat")
        daemon.wait_for_series("pinchpoint_engine_up", 0.0, engine="chat")
        with EngineProcess(tmp_path, "--max-num-seqs", "16", body=REAL, port=engine.port):
            daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 16.0, engine="chat", seconds=40)


def test_processes_are_left_alone_where_the_operator_says_so(tmp_path: Path, nvml: FakeNvml) -> None:
    with (
        EngineProcess(tmp_path, "--max-num-seqs", "8", body=REAL) as engine,
        watching(engine, tmp_path, nvml, "enabled: false") as daemon,
    ):
        daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="chat")
        assert daemon.series("pinchpoint_engine_max_num_seqs", engine="chat") == []
        assert daemon.series("pinchpoint_source_up", source="process") == []
        assert daemon.series("pinchpoint_host_engine_cpu_cores") == []
        config = tmp_path / "pinchpoint.yaml"
        config.write_text(config.read_text().replace("enabled: false", "enabled: true"))
        daemon.hang_up()
        daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 8.0, engine="chat")
        daemon.wait_for(lambda: daemon.series("pinchpoint_host_engine_cpu_cores"), "the cores that it uses")


def test_diagnose_knows_what_the_command_line_says(tmp_path: Path) -> None:
    with EngineProcess(tmp_path, "--max-num-seqs", "24", body=busy(tmp_path, running=24, waiting=30)) as engine:
        command = [sys.executable, "-m", "pinchpoint", "diagnose", engine.url, "--seconds", "6"]
        told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60).stdout
    assert "all 24 batch slots (max_num_seqs, from its command line) are taken" in told
