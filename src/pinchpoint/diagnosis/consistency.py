"""What a person checks before several GPUs work as one: that they are alike, set up alike, and reach each other.

Facts with a remedy, no verdict: a node may be mixed on purpose. GPUs that don't answer, and what a GPU does not tell,
take no part.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.snapshot import GpuReading, PeerLink

MAX_PAIRS_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not alike, or not as it should be: what, among which ``gpus`` (indices), what to do."""

    check: str
    text: str
    remedy: str
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Alike:
    check: str
    what: str
    say: Callable[[GpuReading], str | None]  # equal words, equal GPUs
    remedy: str


def _gib(gpu: GpuReading) -> str | None:
    return None if gpu.memory_total_bytes is None else f"{gpu.memory_total_bytes / 2**30:.1f} GiB"


def _watts(gpu: GpuReading) -> str | None:
    return None if gpu.power_limit_watts is None else f"{gpu.power_limit_watts:.0f} W"


def _link(gpu: GpuReading) -> str | None:
    generation, width = gpu.pcie_link_generation_max, gpu.pcie_link_width_max
    return None if generation is None or width is None else f"generation {generation:.0f}, {width:.0f} lanes"


def _on(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


_MODEL = _Alike(
    "model",
    "models",
    lambda gpu: gpu.name,
    "Give a tensor-parallel engine GPUs of one model (CUDA_VISIBLE_DEVICES): the slowest one sets its pace.",
)
_DRIVER = _Alike("driver", "driver versions", lambda gpu: gpu.driver, "Reboot: a node runs one driver.")
_OF_ONE_MODEL = (  # what differs between models anyway is compared within each
    _Alike(
        "memory",
        "memory sizes",
        _gib,
        "Compare ECC and MIG modes; the GPU with the least memory sets the KV cache of all.",
    ),
    _Alike(
        "power_limit",
        "power limits",
        _watts,
        "Set one limit for all (nvidia-smi -pl WATTS): the GPU with the lowest sets the pace of all.",
    ),
    _Alike(
        "ecc_mode",
        "ECC modes",
        lambda gpu: _on(gpu.ecc_mode),
        "Switch ECC on everywhere (nvidia-smi -e 1, then reset the GPU).",
    ),
    _Alike(
        "mig_mode",
        "MIG modes",
        lambda gpu: _on(gpu.mig_mode),
        "Give a tensor-parallel engine whole GPUs only, or switch MIG off (nvidia-smi -mig 0).",
    ),
    _Alike(
        "pcie_link",
        "PCIe links at best",
        _link,
        "Look at the slot, its riser and its BIOS setting: the narrowest link sets the pace where there is no NVLink.",
    ),
)


def inconsistencies(gpus: Iterable[GpuReading], links: Iterable[PeerLink] = ()) -> tuple[Finding, ...]:
    """Everything found among the GPUs of one node, ``links`` being how they are connected; empty when all is well."""
    up = [gpu for gpu in gpus if gpu.up]
    models: dict[str | None, list[GpuReading]] = {}
    for gpu in up:
        models.setdefault(gpu.name, []).append(gpu)
    found = [
        _unlike(up, _DRIVER),
        _foreign_library(up),
        _unlike(up, _MODEL),
        *(_unlike(alike, check) for alike in models.values() for check in _OF_ONE_MODEL),
        _persistence_off(up),
        *_closed_peers(links),
    ]
    return tuple(finding for finding in found if finding)


def _unlike(gpus: Sequence[GpuReading], check: _Alike) -> Finding | None:
    groups: dict[str, list[str]] = {}
    for gpu in gpus:
        if (said := check.say(gpu)) is not None:
            groups.setdefault(said, []).append(gpu.gpu)
    if len(groups) < 2:
        return None
    parts = (f"{said} on {names(indices)}" for said, indices in groups.items())
    indices = tuple(sorted((index for group in groups.values() for index in group), key=_by_number))
    return Finding(
        check=check.check, text=f"{check.what} differ: {'; '.join(parts)}", remedy=check.remedy, gpus=indices
    )


def _foreign_library(gpus: Sequence[GpuReading]) -> Finding | None:
    """NVML's version is a CUDA release's major number and the driver's version."""
    for gpu in gpus:
        if gpu.driver and gpu.nvml and not f".{gpu.nvml}".endswith(f".{gpu.driver}"):
            return Finding(
                check="library",
                text=f"NVML's library is {gpu.nvml}, which does not belong to driver {gpu.driver}",
                remedy="Install the library of this driver's release, or recreate the container; then restart.",
                gpus=tuple(each.gpu for each in gpus),
            )
    return None


def _persistence_off(gpus: Sequence[GpuReading]) -> Finding | None:
    off = tuple(gpu.gpu for gpu in gpus if gpu.persistence_mode is False)
    if not off:
        return None
    return Finding(
        check="persistence_mode",
        text=f"persistence mode is off on {names(off)}: each start on an idle GPU waits seconds for the driver",
        remedy="Run nvidia-persistenced, or nvidia-smi -pm 1.",
        gpus=off,
    )


def _closed_peers(links: Iterable[PeerLink]) -> Iterable[Finding]:
    closed: dict[str, list[tuple[str, str]]] = {}
    for link in links:
        one, other = sorted((link.gpu, link.peer), key=_by_number)
        if not link.peer_to_peer and (one, other) not in closed.setdefault(link.p2p, []):
            closed[link.p2p].append((one, other))
    for why, pairs in closed.items():
        named = ", ".join(f"{one}–{other}" for one, other in pairs[:MAX_PAIRS_NAMED])
        more = f" and {len(pairs) - MAX_PAIRS_NAMED} pairs more" if len(pairs) > MAX_PAIRS_NAMED else ""
        yield Finding(
            check="p2p",
            text=f"GPUs can't read each other's memory ({why.replace('_', ' ')}): {named}{more}",
            remedy=_P2P_REMEDIES.get(why, _ANY_P2P_REMEDY),
            gpus=tuple(sorted({gpu for pair in pairs for gpu in pair}, key=_by_number)),
        )


_ANY_P2P_REMEDY = "Keep a tensor-parallel group off these pairs: their traffic goes through the host's memory."
_P2P_REMEDIES: Mapping[str, str] = {
    "disabled_by_regkey": "Take the peer-to-peer setting out of the driver's options (modprobe.d); reload it.",
}


def names(indices: Sequence[str]) -> str:
    """GPU 3; GPUs 0, 1 and 2."""
    *first, last = sorted(indices, key=_by_number)
    return f"GPUs {', '.join(first)} and {last}" if first else f"GPU {last}"


def _by_number(index: str) -> tuple[int, str]:
    return len(index), index
