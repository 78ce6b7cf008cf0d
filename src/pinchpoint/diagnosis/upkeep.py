"""What a node's GPUs need from people, whether or not anybody suffers yet: the whole list of findings.

A GPU may serve well and yet be due for a reset. That is no bottleneck, so no rule names it; it is said here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.consistency import Finding, inconsistencies, names
from pinchpoint.snapshot import GpuReading, PeerLink

RECOVERY: Mapping[str, tuple[str, str]] = {  # nvmlDeviceGpuRecoveryAction_t: what is asked for, what to do
    "gpu_reset": ("a GPU reset", "Stop what uses it, then nvidia-smi --gpu-reset -i INDEX."),
    "node_reboot": ("a reboot of the node", "Drain the node and reboot it."),
    "drain_p2p": ("an end of peer-to-peer traffic", "Drain what uses it together with other GPUs, then reset it."),
    "drain_and_reset": ("a drain and a reset", "Let what uses it end, start nothing new, then reset it."),
    "recover_imex_domain": ("a recovery of its IMEX domain", "Restart nvidia-imex on the nodes of its NVLink domain."),
    "bus_reset": ("a reset of its bus", "Drain the node; reset the PCI slot, or reboot."),
    "system_reboot": ("a reboot of the system", "Drain the node and reboot it."),
}
_UNKNOWN_ACTION = ("an action that is new to us", "Look it up: nvidia-smi -q, GPU Recovery Action.")


@dataclass(frozen=True, slots=True)
class _Need:
    check: str
    here: Callable[[GpuReading], bool]
    text: str  # before the names of the GPUs
    remedy: str


_NEEDS = (
    _Need(
        "remapped_rows_failure",
        lambda gpu: bool(gpu.remapped_rows.get("failure")),
        "memory rows could not be remapped on",
        "Replace the card: by NVIDIA's own rule this one is to be returned.",
    ),
    _Need(
        "remapped_rows_pending",
        lambda gpu: bool(gpu.remapped_rows.get("pending")),
        "memory rows wait for a reset to be remapped on",
        "Reset the GPU when it can be spared (nvidia-smi --gpu-reset -i INDEX).",
    ),
    _Need(
        "retired_pages_pending",
        lambda gpu: bool(gpu.retired_pages.get("pending")),
        "memory pages wait for a new start to be retired on",
        "Reset the GPU or reboot when it can be spared.",
    ),
)


def findings(gpus: Sequence[GpuReading], links: Iterable[PeerLink] = ()) -> tuple[Finding, ...]:
    """What the GPUs of one node need, the most urgent first, then what is not alike among them."""
    return (*_asked_for(gpus), *_needed(gpus), *inconsistencies(gpus, links))


def _asked_for(gpus: Sequence[GpuReading]) -> Iterable[Finding]:
    """By the driver: of a GPU that does not answer any more, too."""
    wanted: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu.recovery_action not in (None, "none"):
            wanted.setdefault(str(gpu.recovery_action), []).append(gpu.gpu)
    for action, indices in wanted.items():
        what, remedy = RECOVERY.get(action, _UNKNOWN_ACTION)
        text = f"the driver asks for {what} ({action}) on {names(indices)}"
        yield Finding(check="recovery_action", text=text, remedy=remedy, gpus=tuple(indices))


def _needed(gpus: Sequence[GpuReading]) -> Iterable[Finding]:
    for need in _NEEDS:
        if indices := tuple(gpu.gpu for gpu in gpus if gpu.up and need.here(gpu)):
            yield Finding(check=need.check, text=f"{need.text} {names(indices)}", remedy=need.remedy, gpus=indices)
