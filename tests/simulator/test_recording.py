"""A scenario written as a recording."""

import json

from prometheus_client.parser import text_string_to_metric_families

from pinchpoint.simulator import write_recording
from pinchpoint.snapshot import GpuReading, HostReading


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_recording_has_a_scrape_a_gpu_line_and_a_host_line_per_step(tmp_path):
    write_recording(tmp_path / "r", "throttled_gpu", seconds=10, step_seconds=2, seed=3, warmup_seconds=5)
    scrapes = sorted((tmp_path / "r").glob("*.prom"))
    assert [path.name for path in scrapes] == [f"{n:03}.prom" for n in range(6)]
    assert all(list(text_string_to_metric_families(path.read_text())) for path in scrapes)
    gpus, hosts = lines(tmp_path / "r" / "gpu.jsonl"), lines(tmp_path / "r" / "host.jsonl")
    assert [line["t"] for line in gpus] == [line["t"] for line in hosts] == [0, 2, 4, 6, 8, 10]
    meta = json.loads((tmp_path / "r" / "meta.json").read_text())
    assert (meta["step_seconds"], meta["gpus"], meta["simulated"]) == (2, ["0", "1"], True)
    assert meta["engine"]["max_num_seqs"] == 256
    assert meta["engine"]["gpu_name"] == "NVIDIA H100 80GB HBM3"
    assert gpus[-1]["gpus"][1]["throttle_active"]["hw_thermal_slowdown"] == 1


def test_every_key_is_a_field_of_the_reading_and_none_is_null(tmp_path):
    write_recording(tmp_path, "healthy", seconds=1)
    for gpu in lines(tmp_path / "gpu.jsonl")[0]["gpus"]:
        assert gpu.keys() <= set(GpuReading.__dataclass_fields__)
        assert None not in gpu.values()
        assert gpu["up"] == 1
    host = lines(tmp_path / "host.jsonl")[0]
    assert host.keys() - {"t"} <= set(HostReading.__dataclass_fields__)


def test_one_seed_writes_one_recording(tmp_path):
    for name in ("a", "b"):
        write_recording(tmp_path / name, "memory_wall", seconds=3, seed=7)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
