"""What the way GPUs are connected means for tensor parallelism."""

from itertools import combinations

import pytest

from pinchpoint.diagnosis.topology import (
    Connection,
    TensorParallel,
    judge_engine,
    judge_tensor_parallel,
    learn_links,
    links_lost_since_start,
    node_topology,
)
from pinchpoint.snapshot import (
    EngineFacts,
    EngineReading,
    GpuReading,
    NvLink,
    PeerLink,
    Snapshot,
)


def node(*rows: str, p2p: str = "ok") -> tuple[PeerLink, ...]:
    """Links from the lines of a matrix."""
    words = [row.split() for row in rows]
    return tuple(PeerLink(str(a), str(b), words[a][b], p2p) for a, b in combinations(range(len(rows)), 2))


NVSWITCH = node("X NV18 NV18 NV18", "NV18 X NV18 NV18", "NV18 NV18 X NV18", "NV18 NV18 NV18 X")
TWO_SOCKETS = node("X PIX SYS SYS", "PIX X SYS SYS", "SYS SYS X PIX", "SYS SYS PIX X")
BRIDGED_PAIRS = node("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X")


@pytest.mark.parametrize(
    ("word", "kind", "verdict"),
    [
        ("NV18", Connection.NVLINK, TensorParallel.FINE),
        ("PIX", Connection.PCIE_SAME_SWITCH, TensorParallel.COSTLY),
        ("PXB", Connection.PCIE_SAME_SWITCH, TensorParallel.COSTLY),
        ("PHB", Connection.CROSSES_HOST_BRIDGE, TensorParallel.COSTLY),
        ("NODE", Connection.CROSSES_HOST_BRIDGE, TensorParallel.COSTLY),
        ("SYS", Connection.CROSSES_SOCKETS, TensorParallel.USE_DP),
        ("C2C?", Connection.UNKNOWN, None),
    ],
)
def test_each_link_of_nvidia_smi_has_its_verdict(word: str, kind: Connection, verdict: TensorParallel | None) -> None:
    judgement = judge_tensor_parallel(("0", "1"), [PeerLink("1", "0", word)])
    assert (judgement.kind, judgement.verdict) == (kind, verdict)


def test_nvlink_everywhere_is_fine() -> None:
    judgement = judge_tensor_parallel(("0", "1", "2", "3"), NVSWITCH)
    assert judgement.verdict is TensorParallel.FINE
    assert judgement.text == "GPUs 0, 1, 2 and 3 are connected by NVLink (NV18). Each layer's all-reduce stays on it."


def test_the_worst_pair_judges_the_group_and_the_advice_stays_within_a_socket() -> None:
    judgement = judge_tensor_parallel(("0", "1", "2", "3"), TWO_SOCKETS)
    assert (judgement.kind, judgement.verdict) == (Connection.CROSSES_SOCKETS, TensorParallel.USE_DP)
    assert "one socket (0+1, 2+3)" in judgement.text
    assert judge_tensor_parallel(("2", "3"), TWO_SOCKETS).kind is Connection.PCIE_SAME_SWITCH


def test_pairs_that_are_bridged_by_nvlink_are_named() -> None:
    assert "within NVLink (0+1, 2+3)" in judge_tensor_parallel(("0", "1", "2", "3"), BRIDGED_PAIRS).text


def test_a_pair_that_nobody_knows_makes_the_group_unknown_unless_another_is_worse() -> None:
    assert judge_tensor_parallel(("0", "1", "9"), NVSWITCH).kind is Connection.UNKNOWN
    assert judge_tensor_parallel(("0", "2", "9"), TWO_SOCKETS).kind is Connection.CROSSES_SOCKETS
    assert judge_tensor_parallel(("0", "1"), ()).verdict is None


def test_nvlink_without_peer_access_is_costly_and_says_why() -> None:
    links = node("X NV4", "NV4 X", p2p="disabled_by_regkey")
    judgement = judge_tensor_parallel(("0", "1"), links)
    assert judgement.verdict is TensorParallel.COSTLY
    assert "P2P: disabled by regkey" in judgement.text
    assert "stays on it" not in judgement.text


def test_more_than_two_gpus_without_nvlink_lose_vllm_s_fast_all_reduce() -> None:
    three = node("X PIX PIX", "PIX X PIX", "PIX PIX X")
    assert "fast all-reduce is off" in judge_tensor_parallel(("0", "1", "2"), three).text
    assert "fast all-reduce is off" not in judge_tensor_parallel(("0", "1"), three).text


def snapshot(*engines: EngineReading, links: tuple[PeerLink, ...] = TWO_SOCKETS) -> Snapshot:
    gpus = tuple(GpuReading(gpu=str(n), uuid=f"GPU-{n}", at=1.0) for n in range(4))
    return Snapshot(at=1.0, gpus=gpus, engines=engines, links=links)


def engine(name: str = "chat", gpus: tuple[str, ...] = (), size: int | None = None) -> EngineReading:
    return EngineReading(engine=name, at=1.0, replicas=(), gpus=gpus, facts=EngineFacts(tensor_parallel_size=size))


def test_replicas_of_two_gpus_each_are_judged_by_two() -> None:
    across = engine(gpus=("0", "1", "2", "3"))
    judgement = judge_engine(across, snapshot(across))
    assert judgement is not None
    assert judgement.verdict is TensorParallel.USE_DP
    pairs = engine(gpus=("0", "1", "2", "3"), size=2)
    judgement = judge_engine(pairs, snapshot(pairs))
    assert judgement is not None
    assert judgement.kind is Connection.PCIE_SAME_SWITCH


def test_an_engine_without_tensor_parallelism_is_not_judged() -> None:
    assert judge_engine(engine(gpus=("0",)), snapshot(engine())) is None
    assert judge_engine(engine(gpus=("0", "1"), size=1), snapshot(engine())) is None


def test_the_only_engine_has_all_gpus_and_of_two_nobody_knows_whose_they_are() -> None:
    alone = engine(size=4)
    judgement = judge_engine(alone, snapshot(alone))
    assert judgement is not None
    assert judgement.gpus == ("0", "1", "2", "3")
    assert judge_engine(engine(size=2), snapshot(engine(size=2))) is None  # which two?
    assert judge_engine(engine("a", size=4), snapshot(engine("a", size=4), engine("b"))) is None


def test_a_node_has_a_matrix_and_a_judgement_for_each_engine() -> None:
    topology = node_topology(snapshot(engine("a", ("0", "1")), engine("b", ("2",)), engine("c", ("0", "2"))), {})
    assert topology is not None
    assert topology.matrix == (
        ("X", "PIX", "SYS", "SYS"),
        ("PIX", "X", "SYS", "SYS"),
        ("SYS", "SYS", "X", "PIX"),
        ("SYS", "SYS", "PIX", "X"),
    )
    assert [(j.engine, j.verdict) for j in topology.judgements] == [
        ("a", TensorParallel.COSTLY),
        ("c", TensorParallel.USE_DP),
    ]


def test_without_an_engine_that_can_be_judged_all_gpus_are() -> None:
    topology = node_topology(snapshot(links=TWO_SOCKETS[:-1]), {})
    assert topology is not None
    assert topology.matrix[3][2] == "?"
    assert [(j.engine, j.gpus) for j in topology.judgements] == [(None, ("0", "1", "2", "3"))]


def test_where_nothing_is_known_there_is_no_matrix() -> None:
    assert node_topology(snapshot(links=()), {}) is None
    assert node_topology(Snapshot(at=1.0, links=TWO_SOCKETS), {}) is None


def gpu(up: str, index: str = "0") -> GpuReading:
    links = tuple(NvLink(link=str(n), up=state == "1") for n, state in enumerate(up))
    return GpuReading(gpu=index, uuid=f"GPU-{index}", at=1.0, nvlinks=links)


def test_links_that_were_never_up_are_no_loss() -> None:
    baseline = learn_links({}, [gpu("0000")])
    assert links_lost_since_start(baseline, [gpu("0000")]) == {}


def test_a_link_that_was_up_and_is_down_is_lost_until_it_is_back() -> None:
    baseline = learn_links(learn_links({}, [gpu("1100")]), [gpu("0110")])
    assert links_lost_since_start(baseline, [gpu("0010")]) == {"0": ("0", "1")}
    assert links_lost_since_start(baseline, [gpu("1110")]) == {}
    assert links_lost_since_start(baseline, [GpuReading(gpu="0", uuid="GPU-0", at=2.0, up=False)]) == {}
