"""``diagnose --compare``: a lever is pulled on a simulated service, and what was recorded is compared."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pinchpoint.cli import app
from pinchpoint.simulator import world_of, write_recording
from pinchpoint.simulator.world import Probes, World


def compare(before: Path, after: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", "--compare", str(before), str(after), *more], catch_exceptions=False)


def played(folder: Path, world: World) -> Path:
    write_recording(folder, world, seconds=60.0)
    return folder


def pulled(folder: Path, world: World, then: World) -> dict[str, Any]:
    """What is said of ``world`` and then ``then``."""
    before, after = played(folder / "before", world), played(folder / "after", then)
    told: dict[str, Any] = json.loads(compare(before, after, "--json").stdout)
    return told


def with_engine(world: World, **flags: object) -> World:
    return replace(world, engine=replace(world.engine, **flags))  # type: ignore[arg-type]


def test_the_number_of_slots_that_is_advised_works(tmp_path: Path) -> None:
    world = world_of("slots_exhausted", seed=3)
    explained = CliRunner().invoke(app, ["diagnose", "--replay", str(played(tmp_path / "r", world)), "--json"])
    (flag,) = [a["flag"] for a in json.loads(explained.stdout)["advice"] if a["action"] == "raise_max_num_seqs"]
    slots = int(flag.removeprefix("--max-num-seqs "))
    told = pulled(tmp_path, world, with_engine(world, max_num_seqs=slots))
    assert (told["worked"], told["before"]["class"], told["after"]["class"]) == (True, "scheduler", "healthy")
    assert told["changes"] == [{"name": "max_num_seqs", "before": 32, "after": slots}]


def test_an_fp8_cache_gives_a_full_pool_room(tmp_path: Path) -> None:
    world = world_of("memory_wall", seed=3)
    told = pulled(tmp_path, world, with_engine(world, kv_cache_dtype="fp8"))
    assert told["worked"] is True
    assert told["after"]["ttft_p50_seconds"] < told["before"]["ttft_p50_seconds"] / 2


def test_twice_the_ranks_over_nvlink_are_as_expected_and_over_two_sockets_less(tmp_path: Path) -> None:
    world = world_of("bandwidth_bound", seed=3)
    world = replace(world, replicas=1, workload=replace(world.workload, clients=30))
    near = pulled(tmp_path / "near", world, with_engine(world, gpus=("4", "5")))
    far = pulled(tmp_path / "far", world, with_engine(world, gpus=("4", "5"), link="SYS"))
    assert near["lessons"][0].endswith("1.5 to 1.8 are usual: as expected")
    assert far["lessons"][0].endswith("1.5 to 1.8 are usual: less than expected")


def test_more_gpus_behind_a_gateway_that_buffers_change_nothing_and_it_is_said(tmp_path: Path) -> None:
    world = replace(world_of("buffering_gateway", seed=4), probes=Probes(every_seconds=10.0))
    told = pulled(tmp_path, world, replace(world, replicas=2))
    assert told["worked"] is False
    assert "the way to the engine" in told["lessons"][0]


def test_another_load_is_not_comparable_and_says_why(tmp_path: Path) -> None:
    world = world_of("slots_exhausted", seed=3)
    other = replace(world, workload=replace(world.workload, clients=30))
    result = compare(played(tmp_path / "before", other), played(tmp_path / "after", world_of("prefill_storm", seed=3)))
    assert result.exit_code == 2
    assert result.stdout.startswith("Not comparable\n")
    assert len(result.stderr.splitlines()) == 1
    assert "prompts have" in result.stderr


def test_what_did_not_work_is_bad_news_for_a_script_and_says_what_is_next(tmp_path: Path) -> None:
    recording = played(tmp_path / "r", world_of("memory_wall", seed=3))
    result = compare(recording, recording)
    assert result.exit_code == 1
    assert result.stdout.startswith("It did not work\n")
    assert "it is still kv_capacity; next: " in result.stdout


@pytest.mark.parametrize("which", ["idle", "nowhere"])
def test_nothing_to_compare_is_one_line_and_exit_2(tmp_path: Path, which: str) -> None:
    played(tmp_path / "idle", world_of("idle", seed=3))
    result = compare(played(tmp_path / "healthy", world_of("healthy", seed=3)), tmp_path / which)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert which in result.stderr


def test_compare_stands_alone(tmp_path: Path) -> None:
    result = compare(tmp_path, tmp_path, "--replay", str(tmp_path))
    assert result.exit_code == 2
    assert "nothing else" in result.stderr
