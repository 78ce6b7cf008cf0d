"""A world written as a recording."""

import json
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pinchpoint.simulator import world_of, write_recording
from pinchpoint.simulator.world import Leak, Probes
from pinchpoint.snapshot import GpuReading, HostReading, ProbeReading
from pinchpoint.sources.recording import read_recording
from tests.simulator.node.worlds import small_world

PROBED = Probes(every_seconds=5.0)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_recording_has_a_scrape_a_gpu_line_and_a_host_line_per_step(tmp_path):
    world = world_of("throttled_gpu", seed=3)
    write_recording(tmp_path / "r", world, seconds=10.0, step_seconds=2.0, warm_up_seconds=5.0)
    scrapes = sorted((tmp_path / "r").glob("*.prom"))
    assert [path.name for path in scrapes] == [f"{n:03}.prom" for n in range(6)]
    assert all(list(text_string_to_metric_families(path.read_text())) for path in scrapes)
    gpus, hosts = lines(tmp_path / "r" / "gpu.jsonl"), lines(tmp_path / "r" / "host.jsonl")
    assert [line["t"] for line in gpus] == [line["t"] for line in hosts] == [0, 2, 4, 6, 8, 10]
    meta = json.loads((tmp_path / "r" / "meta.json").read_text())
    assert (meta["step_seconds"], meta["gpus"], meta["simulated"]) == (2, ["0", "1"], True)
    assert meta["engine"]["max_num_seqs"] == 256
    assert meta["engine"]["gpu_name"] == "NVIDIA H100 80GB HBM3"
    assert meta["links"] == [{"gpu": "0", "peer": "1", "link": "NV18", "p2p": "ok"}]
    assert gpus[-1]["gpus"][1]["throttle_active"]["hw_thermal_slowdown"] == 1


def test_every_key_is_a_field_of_the_reading_and_none_is_null(tmp_path):
    write_recording(tmp_path, small_world(probes=PROBED), seconds=10.0)
    for gpu in lines(tmp_path / "gpu.jsonl")[0]["gpus"]:
        assert gpu.keys() <= set(GpuReading.__dataclass_fields__)
        assert None not in gpu.values()
        assert gpu["up"] == 1
    host, probe = lines(tmp_path / "host.jsonl")[0], lines(tmp_path / "probe.jsonl")[0]
    assert host.keys() - {"t"} <= set(HostReading.__dataclass_fields__)
    assert probe.keys() - {"t"} <= set(ProbeReading.__dataclass_fields__)
    assert None not in [*host.values(), *probe.values()]


@pytest.mark.parametrize("seed", [2, 3])
def test_the_same_world_writes_the_same_files(tmp_path, seed):
    for name in ("a", "b"):
        write_recording(tmp_path / name, small_world(seed=seed, replicas=2, probes=PROBED), seconds=5.0)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) > 6
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_replicas_are_cores_of_one_server_of_an_even_seed(tmp_path):
    write_recording(tmp_path, small_world(seed=2, replicas=3), seconds=2.0)
    cores = {
        sample.labels["engine"]
        for family in text_string_to_metric_families((tmp_path / "000.prom").read_text())
        for sample in family.samples
        if sample.name == "vllm:num_requests_running"
    }
    assert cores == {"0", "1", "2"}
    recording = read_recording(tmp_path)
    assert recording.facts.data_parallel_size == 3
    assert len(recording.snapshots[0].engines[0].replicas) == 3


def test_replicas_are_servers_in_folders_of_their_own_of_an_odd_seed(tmp_path):
    write_recording(tmp_path, small_world(seed=3, replicas=2, engine={"gpus": ("0", "1")}), seconds=2.0)
    assert not list(tmp_path.glob("*.prom"))
    assert [path.parent.name for path in sorted(tmp_path.glob("*/000.prom"))] == ["small-0", "small-1"]
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["engines"] == [{"name": "small-0", "gpus": ["0", "1"]}, {"name": "small-1", "gpus": ["2", "3"]}]
    assert read_recording(tmp_path).engines == ("small-0", "small-1")


def test_a_server_that_has_ended_leaves_a_gap(tmp_path):
    leak = Leak(gpu="1", bytes_per_second=5e8)
    for seed, folders in ((2, ["."]), (3, ["small-0", "small-1"])):
        folder = tmp_path / str(seed)
        world = small_world(seed=seed, replicas=2, faults=(leak,))
        service = write_recording(folder, world, seconds=20.0, warm_up_seconds=2.0)
        assert service.dead == {1}
        *whole, ended = [len(list((folder / name).glob("*.prom"))) for name in folders]
        assert whole in ([], [21])
        assert 3 < ended < 18
        assert len(lines(folder / "gpu.jsonl")) == 21


def test_the_warm_up_is_played_and_not_written(tmp_path):
    world = replace(small_world(probes=PROBED), seed=5)
    write_recording(tmp_path, world, seconds=20.0, warm_up_seconds=30.0)
    times = [line["t"] for line in lines(tmp_path / "probe.jsonl")]
    assert times
    assert 0.0 <= min(times) <= max(times) <= 20.0
    first = next(
        sample.value
        for family in text_string_to_metric_families((tmp_path / "000.prom").read_text())
        for sample in family.samples
        if sample.name == "vllm:generation_tokens_total"
    )
    assert first > 1000
