"""What joins an engine's reading: who is believed, which GPUs are whose, and when nothing is said."""

from dataclasses import replace
from typing import Any

import pytest

from pinchpoint.daemon.joining import Joiner
from pinchpoint.snapshot import (
    EngineFacts,
    EngineProcess,
    EngineReading,
    EngineTarget,
    GpuPod,
    GpuReading,
    MigInstance,
    ReplicaReading,
)
from pinchpoint.sources.process import Looked

TARGET = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=EngineFacts())


def gpu(index: int, *pids: int, **more: Any) -> GpuReading:
    return GpuReading(**{"gpu": str(index), "uuid": f"GPU-{index}", "at": 1.0, "process_ids": pids, **more})


def reading(*replicas: str, at: float = 1.0, **more: Any) -> EngineReading:
    own = tuple(ReplicaReading(replica=name) for name in replicas or ("0",))
    return EngineReading(engine="chat", at=at, replicas=own, **more)


def process(*pids: int, pid: int = 100, by_replica: dict[str, tuple[int, ...]] | None = None, **facts: Any) -> Looked:
    own = EngineFacts().completed(EngineFacts(**facts), "command_line")
    found = EngineProcess(
        pid=pid,
        facts=own,
        pids=(pid, *pids),
        pids_by_replica=by_replica or {},
    )
    return Looked(processes={"chat": found}, living=frozenset({pid, *pids, 900}))


@pytest.fixture
def joiner() -> Joiner:
    joiner = Joiner()
    joiner.expect([TARGET])
    return joiner


def joined(
    joiner: Joiner, read: EngineReading, gpus: tuple[GpuReading, ...] = (), pods: tuple[GpuPod, ...] = ()
) -> EngineReading:
    (found,) = joiner.join([read], gpus, pods)
    return found


def test_the_configuration_is_believed_before_the_command_line_and_each_fact_says_who_said_it(joiner: Joiner) -> None:
    target = replace(TARGET, facts=EngineFacts(kind="vllm", max_num_seqs=8))
    joiner.expect([target])
    joiner.put(process(max_num_seqs=16, tensor_parallel_size=2))
    own = replace(target.facts, model="m").completed(EngineFacts(max_model_len=2048), "models")
    found = joined(joiner, reading(facts=own)).facts
    assert (found.max_num_seqs, found.tensor_parallel_size) == (8, 2)
    assert found.origins == {
        "kind": "config", "model": "metrics", "max_num_seqs": "config", "max_model_len": "models",
        "tensor_parallel_size": "command_line",
    }  # fmt: skip


def test_what_a_port_of_this_host_said_of_itself_is_not_taken_for_the_configuration(joiner: Joiner) -> None:
    for found_by, origin in (("loopback", "metrics"), ("file/fleet", "discovery"), ("", "config")):
        joiner.expect([replace(TARGET, facts=EngineFacts(kind="vllm"), found_by=found_by)])
        assert joined(joiner, reading(facts=EngineFacts(kind="vllm"))).facts.origins["kind"] == origin


def test_a_capacity_that_only_the_log_says_is_the_replicas_and_never_replaces_their_own(joiner: Joiner) -> None:
    joiner.put(process(kv_cache_capacity_tokens=5000.0))
    own = replace(
        reading("0", "1"), replicas=(ReplicaReading(kv_cache_capacity_tokens=7.0), ReplicaReading(replica="1"))
    )
    assert [r.kv_cache_capacity_tokens for r in joined(joiner, own).replicas] == [7.0, 5000.0]


def test_a_reading_stays_the_same_object_until_something_of_it_changes(joiner: Joiner) -> None:
    joiner.put(process(101, max_num_seqs=16))
    own, gpus = reading(), (gpu(0, 101),)
    first = joined(joiner, own, gpus)
    assert joined(joiner, own, (replace(gpus[0], at=2.0, power_watts=300.0),)) is first
    joiner.put(process(101, max_num_seqs=16))  # the same found again
    assert joined(joiner, own, gpus) is first
    moved = joined(joiner, own, (gpu(0), gpu(1, 101)))
    assert (moved.gpus, moved.at) == (("1",), first.at)
    joiner.put(process(101, max_num_seqs=32))
    assert joined(joiner, own, gpus).facts.max_num_seqs == 32


def test_the_gpus_are_those_of_the_whole_tree_and_none_where_nothing_tells(joiner: Joiner) -> None:
    gpus = (gpu(0, 101), gpu(1, 102), gpu(2, 999), gpu(10, 101))
    assert joined(joiner, reading(), gpus).gpus == ()
    joiner.put(process(101, 102))
    found = joined(joiner, reading(), gpus)
    assert (found.gpus, found.gpus_by_replica) == (("0", "1", "10"), {"0": ("0", "1", "10")})
    joiner.put(Looked())
    assert joined(joiner, reading(), gpus).gpus == ()


def test_what_the_operator_says_wins_over_processes_and_pods(joiner: Joiner) -> None:
    joiner.expect([replace(TARGET, gpus=("3",), labels={"namespace": "serving", "pod": "chat-0"})])
    joiner.put(process(101))
    pods = (GpuPod(uuid="GPU-1", namespace="serving", pod="chat-0", container="vllm"),)
    found = joined(joiner, reading(gpus=("3",)), (gpu(0, 101), gpu(1), gpu(3)), pods)
    assert (found.gpus, found.gpus_by_replica) == (("3",), {"0": ("3",)})


def test_an_engine_of_a_pod_has_the_gpus_that_the_kubelet_gave_it(joiner: Joiner) -> None:
    joiner.expect([replace(TARGET, labels={"namespace": "serving", "pod": "chat-0"})])
    mig = MigInstance(uuid="MIG-7", gpu_instance="7", compute_instance="0")
    pods = tuple(
        GpuPod(uuid=uuid, namespace=namespace, pod=pod, container="vllm")
        for uuid, namespace, pod in [
            ("GPU-1", "serving", "chat-0"), ("MIG-7", "serving", "chat-0"), ("GPU-2", "other", "chat-0"),
        ]
    )  # fmt: skip
    found = joined(joiner, reading(), (gpu(1), gpu(2), gpu(4, mig_instances=(mig,))), pods)
    assert found.gpus == ("1", "4")
    joiner.expect([replace(TARGET, labels={"pod": "chat-0"})])
    assert joined(joiner, reading(), (gpu(1), gpu(2)), pods).gpus == ()


def test_replicas_have_the_gpus_of_their_ranks_and_what_is_no_ranks_is_nobodys(joiner: Joiner) -> None:
    joiner.put(process(101, 102, 103, by_replica={"0": (101,), "1": (102,)}))
    found = joined(joiner, reading("0", "1"), (gpu(0, 101), gpu(1, 102), gpu(2, 103)))
    assert found.gpus_by_replica == {"0": ("0",), "1": ("1",), "": ("2",)}


@pytest.mark.parametrize(
    ("size", "stages", "expected"),
    [
        (2, None, {"0": ("0", "1"), "1": ("2", "3")}),
        (1, 2, {"0": ("0", "1"), "1": ("2", "3")}),
        (1, None, {"": ("0", "1", "2", "3")}),
        (3, None, {"": ("0", "1", "2", "3")}),
        (None, None, {"": ("0", "1", "2", "3")}),
    ],
)
def test_without_titles_configured_gpus_are_split_only_where_that_comes_out_even(
    joiner: Joiner, size: int | None, stages: int | None, expected: dict[str, tuple[str, ...]]
) -> None:
    facts = EngineFacts(tensor_parallel_size=size, pipeline_parallel_size=stages)
    joiner.expect([replace(TARGET, facts=facts, gpus=("0", "1", "2", "3"))])
    own = reading("0", "1", facts=facts, gpus=("0", "1", "2", "3"))
    assert joined(joiner, own).gpus_by_replica == expected


def test_a_gpu_that_is_lost_stays_the_engines_until_that_is_another_run(joiner: Joiner) -> None:
    joiner.put(process(101, 102, by_replica={"0": (101,), "1": (102,)}))
    before = joined(joiner, reading("0", "1"), (gpu(0, 101), gpu(1, 102)))
    lost = (gpu(0, 101), gpu(1, up=False, process_ids=None))
    after = joined(joiner, reading("0", "1", at=2.0), lost)
    assert after.gpus_by_replica == before.gpus_by_replica == {"0": ("0",), "1": ("1",)}
    untold = joined(joiner, reading("0", "1", at=3.0), ())  # NVML is shut down for a while
    assert untold.gpus == ("0", "1")
    joiner.put(process(201, pid=200, by_replica={"0": (201,)}))
    assert joined(joiner, reading("0", at=4.0), (gpu(0, 201), lost[1])).gpus == ("0",)


def test_who_computes_on_an_engines_gpu_beside_it_is_named_once(joiner: Joiner) -> None:
    looked = process(101)
    other = EngineProcess(pid=300, pids=(300, 301))
    joiner.put(
        replace(
            looked,
            processes={**looked.processes, "draft": other},
            living=looked.living | {300, 301, 901, 902, 903, 904},
        )
    )
    gpus = (gpu(0, 101, 300, 301), gpu(1, 101), gpu(2, 900), gpu(3, 101, 777), gpu(4, 101, 900, mig_mode=True))
    assert joined(joiner, reading(), gpus).warnings == ("GPU 0 is shared with engine draft",)  # 777 has ended
    gpus = (gpu(0, 101, *range(900, 905)),)
    (warning,) = joined(joiner, reading(warnings=()), gpus).warnings
    assert warning == "GPU 0 is shared with process 900, process 901, process 902, process 903"


@pytest.mark.parametrize(("found_by", "origin"), [("", "config"), ("file/fleet", "discovery"), ("loopback", "metrics")])
def test_a_kind_that_was_seen_and_not_said_is_the_metrics_word(joiner: Joiner, found_by: str, origin: str) -> None:
    facts = EngineFacts(kind="vllm")
    joiner.expect([replace(TARGET, facts=facts, found_by=found_by)])
    assert joined(joiner, reading(facts=facts)).facts.origins == {"kind": origin}


def test_the_name_of_the_gpus_is_known_where_all_are_the_same(joiner: Joiner) -> None:
    joiner.put(process(101))
    same = (gpu(0, 101, name="NVIDIA H200"), gpu(1, 101, name="NVIDIA H200"), gpu(2, name="NVIDIA L4"))
    found = joined(joiner, reading(), same).facts
    assert (found.gpu_name, found.origins["gpu_name"]) == ("NVIDIA H200", "nvml")
    mixed = (gpu(0, 101, name="NVIDIA H200"), gpu(1, 101, name="NVIDIA L4"))
    assert joined(joiner, reading(at=2.0), mixed).facts.gpu_name is None


def test_an_engine_that_is_gone_is_forgotten(joiner: Joiner) -> None:
    joiner.put(process(101))
    joined(joiner, reading(), (gpu(0, 101),))
    joiner.expect([])
    assert joined(joiner, reading(), (gpu(0, 101),)).gpus == ()
