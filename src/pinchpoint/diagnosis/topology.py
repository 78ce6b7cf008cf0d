"""What the way GPUs are connected means for tensor parallelism, which has them exchange data twice in each layer.

Sources: ``nvidia-smi topo -m`` for the words; vLLM, "Parallelism and Scaling": without NVLink (L40S) prefer pipeline
parallelism; vLLM's ``custom_all_reduce.py``: its fast all-reduce is off for more than two GPUs that are not all
connected by NVLink; NCCL, ``NCCL_P2P_LEVEL``: where a transfer goes through the CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from pinchpoint.diagnosis.consistency import names
from pinchpoint.snapshot import EngineReading, GpuReading, PeerLink, Snapshot

UNKNOWN_LINK = "?"
MAX_GPUS = 64  # in the matrix, which grows with their square


class Connection(StrEnum):
    """The worst link within a group of GPUs."""

    NVLINK = "nvlink"
    PCIE_SAME_SWITCH = "pcie_same_switch"
    CROSSES_HOST_BRIDGE = "crosses_host_bridge"
    CROSSES_SOCKETS = "crosses_sockets"
    UNKNOWN = "unknown"


class TensorParallel(StrEnum):
    """What follows for a group."""

    FINE = "tp_fine"
    COSTLY = "tp_costly"
    USE_DP = "use_dp"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyJudgement:
    """``text`` is for people: what connects the GPUs, what that costs, what to do. No ``verdict``: unknown."""

    engine: str | None = None  # None: all GPUs of the node, taken as one group
    gpus: tuple[str, ...]
    kind: Connection
    verdict: TensorParallel | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTopology:
    """How a node's GPUs are connected, and what that means for each engine on two or more of them.

    ``matrix`` has a row and a column for each of ``gpus``, in the words of ``nvidia-smi topo -m``: X for itself, ``?``
    where nobody knows. ``links_lost`` are the NVLinks, by GPU, that are down and have been up.
    """

    gpus: tuple[str, ...]
    matrix: tuple[tuple[str, ...], ...]
    judgements: tuple[TopologyJudgement, ...]
    links_lost: Mapping[str, tuple[str, ...]]


_BY_WORD = {
    "PIX": Connection.PCIE_SAME_SWITCH,
    "PXB": Connection.PCIE_SAME_SWITCH,
    "PHB": Connection.CROSSES_HOST_BRIDGE,
    "NODE": Connection.CROSSES_HOST_BRIDGE,
    "SYS": Connection.CROSSES_SOCKETS,
}
_WORST_FIRST = (
    Connection.CROSSES_SOCKETS,
    Connection.UNKNOWN,
    Connection.CROSSES_HOST_BRIDGE,
    Connection.PCIE_SAME_SWITCH,
    Connection.NVLINK,
)
_VERDICTS = {
    Connection.NVLINK: TensorParallel.FINE,
    Connection.PCIE_SAME_SWITCH: TensorParallel.COSTLY,
    Connection.CROSSES_HOST_BRIDGE: TensorParallel.COSTLY,
    Connection.CROSSES_SOCKETS: TensorParallel.USE_DP,
    Connection.UNKNOWN: None,
}
_REPLICAS = "if the model fits one GPU, run a replica on each (data parallel)"


def node_topology(snapshot: Snapshot, ever_up: Mapping[str, frozenset[str]]) -> NodeTopology | None:
    """The topology of a snapshot; ``None`` where there is nothing to connect or nobody knows how.

    ``ever_up`` are the NVLinks that were seen up (``learn_links``). Where no engine can be judged, all GPUs are.
    """
    gpus = tuple(dict.fromkeys(gpu.gpu for gpu in snapshot.gpus))[:MAX_GPUS]
    if len(gpus) < 2 or not snapshot.links:
        return None
    judged = [judgement for engine in snapshot.engines if (judgement := judge_engine(engine, snapshot))]
    return NodeTopology(
        gpus=gpus,
        matrix=_matrix(gpus, snapshot.links),
        judgements=tuple(judged) or (judge_tensor_parallel(gpus, snapshot.links),),
        links_lost=links_lost_since_start(ever_up, snapshot.gpus),
    )


def judge_tensor_parallel(gpus: Sequence[str], links: Sequence[PeerLink]) -> TopologyJudgement:
    """Judges tensor parallelism over ``gpus`` (two or more indices). The worst pair sets the pace of the group."""
    group = tuple(sorted(set(gpus), key=_number))
    found = _pairs(links)
    pairs = {pair: found.get(frozenset(pair)) for pair in combinations(group, 2)}
    kinds = {pair: _kind(link) for pair, link in pairs.items()}
    kind = next((kind for kind in _WORST_FIRST if kind in kinds.values()), Connection.UNKNOWN)
    worst = tuple(pair for pair in pairs if kinds[pair] is kind)
    closed = next((link for link in pairs.values() if link and not link.peer_to_peer), None)
    verdict = _VERDICTS[kind]
    if kind is Connection.NVLINK and closed:
        verdict = TensorParallel.COSTLY
    sentences = [_what(kind, group, worst, pairs), _so(kind, group, kinds, closed=closed is not None)]
    if closed and kind is not Connection.UNKNOWN:
        why = closed.p2p.replace("_", " ")
        sentences.append(
            f"GPU {closed.gpu} and GPU {closed.peer} can't read each other's memory (P2P: {why}), so their data takes "
            "a detour through host memory."
        )
    return TopologyJudgement(gpus=group, kind=kind, verdict=verdict, text=" ".join(filter(None, sentences)))


def judge_engine(engine: EngineReading, snapshot: Snapshot) -> TopologyJudgement | None:
    """Judges the engine's tensor-parallel groups and gives the worst; ``None`` when it has none, or nobody knows which.

    Ranks take their GPUs in order, so with data parallelism the first ``tensor_parallel_size`` GPUs are one group.
    """
    declared = engine.gpus or (
        tuple(g.gpu for g in snapshot.gpus) if snapshot.engine_names() == (engine.engine,) else ()
    )
    size = engine.facts.tensor_parallel_size or len(declared)
    if size < 2 or len(declared) < size or (not engine.gpus and size != len(declared)):
        return None
    groups = [declared[first : first + size] for first in range(0, len(declared) - size + 1, size)]
    judged = [judge_tensor_parallel(group, snapshot.links) for group in groups]
    worst = min(judged, key=lambda judgement: _WORST_FIRST.index(judgement.kind))
    return replace(worst, engine=engine.engine)


def learn_links(baseline: Mapping[str, frozenset[str]], gpus: Sequence[GpuReading]) -> Mapping[str, frozenset[str]]:
    """The NVLinks that were ever seen up, by the GPU's UUID: ``baseline`` with those of ``gpus``."""
    up = {gpu.uuid: frozenset(link.link for link in gpu.nvlinks if link.up) for gpu in gpus if gpu.nvlinks}
    new = {uuid: links for uuid, links in up.items() if not links <= baseline.get(uuid, frozenset())}
    return {**baseline, **{uuid: links | baseline.get(uuid, frozenset()) for uuid, links in new.items()}}


def links_lost_since_start(
    baseline: Mapping[str, frozenset[str]], gpus: Sequence[GpuReading]
) -> Mapping[str, tuple[str, ...]]:
    """By GPU index, the NVLinks that are down and have been up: others may be meant to be down."""
    lost = {
        gpu.gpu: tuple(n.link for n in gpu.nvlinks if n.up is False and n.link in baseline.get(gpu.uuid, ()))
        for gpu in gpus
    }
    return {gpu: links for gpu, links in lost.items() if links}


def _matrix(gpus: Sequence[str], links: Sequence[PeerLink]) -> tuple[tuple[str, ...], ...]:
    found = _pairs(links)

    def word(one: str, other: str) -> str:
        link = found.get(frozenset((one, other)))
        return "X" if one == other else link.link if link else UNKNOWN_LINK

    return tuple(tuple(word(row, column) for column in gpus) for row in gpus)


def _pairs(links: Sequence[PeerLink]) -> dict[frozenset[str], PeerLink]:
    return {frozenset((link.gpu, link.peer)): link for link in links}


def _kind(link: PeerLink | None) -> Connection:
    if link is None:
        return Connection.UNKNOWN
    return Connection.NVLINK if link.link.startswith("NV") else _BY_WORD.get(link.link, Connection.UNKNOWN)


def _what(
    kind: Connection,
    group: tuple[str, ...],
    worst: tuple[tuple[str, str], ...],
    pairs: Mapping[tuple[str, str], PeerLink | None],
) -> str:
    words = " and ".join(sorted({link.link for pair in worst if (link := pairs[pair])}))
    one, other = worst[0] if worst else ("", "")
    if kind is Connection.NVLINK:
        return f"{names(group)} are connected by NVLink ({words})."
    if kind is Connection.PCIE_SAME_SWITCH:
        return f"GPU {one} and GPU {other} share no NVLink, only PCIe switches ({words})."
    if kind is Connection.CROSSES_HOST_BRIDGE:
        return f"GPU {one} and GPU {other} reach each other through the CPU's PCIe host bridge ({words})."
    if kind is Connection.CROSSES_SOCKETS:
        return f"GPU {one} and GPU {other} are on different CPU sockets ({words})."
    return f"How {names(group)} are connected is not known; nvidia-smi topo -m may tell."


def _so(kind: Connection, group: tuple[str, ...], kinds: Mapping[tuple[str, str], Connection], *, closed: bool) -> str:
    if kind is Connection.NVLINK:
        return "" if closed else "Each layer's all-reduce stays on it."
    if kind is Connection.UNKNOWN:
        return ""
    near = _islands(group, kinds, {Connection.NVLINK})
    nearby = "NVLink"
    if not near and kind is Connection.CROSSES_SOCKETS:
        near, nearby = (
            _islands(group, kinds, set(Connection) - {Connection.CROSSES_SOCKETS, Connection.UNKNOWN}),
            "one socket",
        )
    inside = f"keep tensor parallelism within {nearby} ({', '.join('+'.join(i) for i in near)})" if near else ""
    else_ = f"else {inside or 'prefer pipeline parallelism'}"
    if kind is Connection.CROSSES_SOCKETS:
        return f"Every layer's all-reduce crosses the sockets: {_REPLICAS}, {else_}."
    fast = " vLLM's fast all-reduce is off for more than two such GPUs." if len(group) > 2 and not near else ""
    return f"Tensor parallelism costs time in every layer: {_REPLICAS}, {else_}.{fast}"


def _islands(
    group: tuple[str, ...], kinds: Mapping[tuple[str, str], Connection], near: Collection[Connection]
) -> list[tuple[str, ...]]:
    """The groups of GPUs, two or more, all of whose pairs are near."""
    islands: list[list[str]] = []
    for gpu in group:
        home = next((i for i in islands if all(kinds[other, gpu] in near for other in i)), None)
        if home is None:
            islands.append([gpu])
        else:
            home.append(gpu)
    return [tuple(island) for island in islands if len(island) > 1]


def _number(gpu: str) -> tuple[int, str]:
    return (int(gpu) if gpu.isdecimal() else 2**31, gpu)
