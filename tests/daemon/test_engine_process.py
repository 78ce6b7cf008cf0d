"""An engine on this host in the daemon: found on loopback, with its facts, its GPUs and a verdict that knows both."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.engine_process import EngineProcess, free_port
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


@pytest.fixture
def daemon(tmp_path: Path, nvml: FakeNvml) -> Iterator[RunningDaemon]:
    config = tmp_path / "pinchpoint.yaml"
    config.write_text(
        "gpu: {interval_seconds: 0.5, medium_interval_seconds: 1}\n"
        "engines: {interval_seconds: 1, timeout_seconds: 0.9}\n"
        "processes: {interval_seconds: 1}\n"
        "discovery: {interval_seconds: 5}\n"
    )
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        yield daemon


def gpus_of(daemon: RunningDaemon, engine: str) -> list[tuple[str, str, str]]:
    rows = [dict(labels) for labels in daemon.samples().get("pinchpoint_engine_gpu_info", {})]
    return sorted((row["replica"], row["gpu"], row["uuid"]) for row in rows if row["engine"] == engine)


def engine_of(daemon: RunningDaemon, name: str) -> dict[str, object]:
    return next((e for e in json.loads(daemon.get("/api/v1/status"))["engines"] if e["engine"] == name), {})


def test_a_found_engine_has_the_facts_of_its_command_line_its_log_and_its_models_and_the_verdict_rests_on_them(
    tmp_path: Path, nvml: FakeNvml, request: pytest.FixtureRequest
) -> None:
    words = ("--max-num-seqs", "24", "-tp", "2", "--api-key", "s3cret")
    body = busy(tmp_path, running=24, waiting=30)
    with EngineProcess(tmp_path, *words, body=body, children=["VLLM::EngineCore"]) as engine:
        nvml.set(f"gpu 2 proc {engine.child('VLLM::EngineCore')} 70000000000")
        daemon: RunningDaemon = request.getfixturevalue("daemon")
        name = f"vllm-{engine.port}"
        daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 24.0, engine=name)
        daemon.wait_for(lambda: gpus_of(daemon, name) == [("0", "2", UUIDS[2])], "its GPU")
        origins = {
            (labels["fact"], labels["origin"])
            for key in daemon.samples()["pinchpoint_engine_fact_origin_info"]
            if (labels := dict(key))["engine"] == name
        }
        assert {
            ("max_num_seqs", "command_line"), ("tensor_parallel_size", "command_line"), ("max_model_len", "models"),
            ("enable_prefix_caching", "metrics"), ("gpu_name", "nvml"),
        } <= origins  # fmt: skip
        daemon.wait_for(lambda: engine_of(daemon, name).get("class") == "scheduler", "the verdict", 40)
        told = engine_of(daemon, name)
        assert "all 24 batch slots (max_num_seqs, from its command line) are taken" in str(told["why"])
        assert told["facts"]["max_num_seqs"] == {"value": 24, "origin": "command_line"}  # type: ignore[index]
        assert told["gpus"] == ["2"]
        everything = daemon.get("/metrics").decode() + daemon.get("/api/v1/status").decode() + daemon.log
        assert "s3cret" not in everything
        daemon.wait_for_series("pinchpoint_source_up", 1.0, source="process")


def test_each_replica_has_the_gpus_of_its_rank_and_a_stranger_beside_it_is_named(
    tmp_path: Path, nvml: FakeNvml, daemon: RunningDaemon
) -> None:
    port = free_port()
    with EngineProcess(tmp_path, "-dp", "2", body=DATA_PARALLEL, children=CORES, port=port) as engine:
        name = f"vllm-{port}"
        cores = [engine.child(title) for title in CORES]
        nvml.set(
            f"gpu 0 proc {cores[0]} 1000000", f"gpu 1 proc {cores[0]} 1000000", f"gpu 3 proc {cores[1]} 1000000",
            f"gpu 3 proc {daemon.process.pid} 1000",
        )  # fmt: skip
        expected = [("0", "0", UUIDS[0]), ("0", "1", UUIDS[1]), ("1", "3", UUIDS[3])]
        daemon.wait_for(lambda: gpus_of(daemon, name) == expected, "the GPUs of both replicas", 40)
        sharer = f"GPU 3 is shared with process {daemon.process.pid}"
        daemon.wait_for(lambda: sharer in engine_of(daemon, name).get("warnings", ()), "the warning")  # type: ignore[operator]
        nvml.fault(gpu=3, code=15)  # lost: it lists no process any more, and still is the engine's
        daemon.wait_for_series("pinchpoint_gpu_up", 0.0, gpu="3")
        daemon.wait_for(lambda: engine_of(daemon, name).get("class") == "hardware", "the lost GPU to be the engine's")
        assert gpus_of(daemon, name) == expected


def test_a_restarted_engine_is_looked_at_at_once(tmp_path: Path, nvml: FakeNvml) -> None:
    config = tmp_path / "pinchpoint.yaml"
    port = free_port()
    config.write_text(
        f"engines: {{interval_seconds: 1, timeout_seconds: 0.9, targets: [{{name: chat, url: 'http://127.0.0.1:{port}'}}]}}\n"
        "processes: {interval_seconds: 3600}\n"
    )
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        for slots in (8, 16):
            with EngineProcess(tmp_path, "--max-num-seqs", str(slots), body=REAL, port=port):
                daemon.wait_for_series("pinchpoint_engine_max_num_seqs", float(slots), engine="chat", seconds=20)
            daemon.wait_for_series("pinchpoint_engine_up", 0.0, engine="chat")


def test_processes_are_left_alone_where_the_operator_says_so(tmp_path: Path, nvml: FakeNvml) -> None:
    config = tmp_path / "pinchpoint.yaml"
    with EngineProcess(tmp_path, "--max-num-seqs", "8", body=REAL) as engine:
        config.write_text(
            f"engines: {{targets: [{{name: chat, url: '{engine.url}', gpus: ['1']}}]}}\nprocesses: {{enabled: false}}\n"
        )
        with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
            daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="chat")
            daemon.wait_for(lambda: gpus_of(daemon, "chat") == [("0", "1", UUIDS[1])], "the configured GPU")
            assert daemon.series("pinchpoint_engine_max_num_seqs", engine="chat") == []
            assert daemon.series("pinchpoint_source_up", source="process") == []
            config.write_text(config.read_text().replace("false", "true"))
            daemon.hang_up()
            daemon.wait_for_series("pinchpoint_engine_max_num_seqs", 8.0, engine="chat")
