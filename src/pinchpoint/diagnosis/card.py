"""One GPU over the window. What is found of a card is found once a tick, however many engines it serves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pinchpoint.diagnosis.identity import once_each
from pinchpoint.diagnosis.rates import known, mean, ratio, total
from pinchpoint.physics import gpu_by_name, pcie_bytes_per_second
from pinchpoint.snapshot import GpuReading, Snapshot, ThrottleReason

FAULT_THROTTLES = (
    ThrottleReason.HW_SLOWDOWN,
    ThrottleReason.HW_THERMAL_SLOWDOWN,
    ThrottleReason.HW_POWER_BRAKE,
    ThrottleReason.SW_THERMAL_SLOWDOWN,
)
HEAT = frozenset({ThrottleReason.HW_THERMAL_SLOWDOWN, ThrottleReason.SW_THERMAL_SLOWDOWN})
POWER_CAP = (ThrottleReason.SW_POWER_CAP,)
# NVIDIA's Xid catalogue. Application errors (13, 31, 43, 45) are not the card's.
SERIOUS_XIDS: Mapping[str, str] = {
    "48": "double-bit ECC error",
    "62": "microcontroller halt",
    "64": "row remapping failed",
    "74": "NVLink error",
    "79": "fallen off the bus",
    "94": "contained ECC error",
    "95": "uncontained ECC error",
    "119": "GSP timeout",
    "120": "GSP error",
    "154": "recovery needed",
}

WORKING_RATIO = 0.05  # an idle card's clock says nothing: it rests too
LOADED_RATIO = 0.5  # an idle card lets its PCIe link down to save power: only a busy one is judged by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU of the engine over the window. A share is of its readings; ``None`` is unknown."""

    gpu: str
    utilization_ratio: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    power_ratio: float | None = None  # of the power limit
    fault_throttle_share: float | None = None
    fault_throttles: tuple[ThrottleReason, ...] = ()  # those that were active in any reading
    power_cap_share: float | None = None
    power_limit_ratio: float | None = None  # over the published power of such a card; below 1 somebody lowered it
    clock_ratio: float | None = None  # SM clock over its maximum, while it works
    works: bool | None = None  # any reading that shows work
    uncorrectable_errors: float | None = None
    serious_xids: Mapping[str, float] = field(default_factory=dict)  # events by code
    recovery_action: str | None = None  # what the driver asks for now; ``None`` also when that is nothing
    rows_failed: bool = False  # memory that could not be remapped
    link_ratio: float | None = None  # PCIe bandwidth under load over the best that card and slot can do
    link_slow_share: float | None = None  # readings under load with less than that
    link: str = ""  # the newest of these, in words
    link_busy_ratio: float | None = None  # PCIe traffic under load over what the link is able to as it runs
    pcie_bytes_per_second: float | None = None  # both directions
    nvlinks_lost: float | None = None  # that were up within the window and are down now


@once_each(4)
def histories_of(snapshots: tuple[Snapshot, ...]) -> Mapping[tuple[str, str], tuple[GpuReading, ...]]:
    """The distinct readings of each card, oldest first, by index and UUID: an index may pass on."""
    found: dict[tuple[str, str], dict[float, GpuReading]] = {}
    for snapshot in snapshots:
        for gpu in snapshot.gpus:
            found.setdefault((gpu.gpu, gpu.uuid), {})[gpu.at] = gpu
    return {who: tuple(by_time.values()) for who, by_time in found.items()}


@once_each(256)
def card_of(history: tuple[GpuReading, ...]) -> Card:
    """The card that these are the readings of, oldest first."""
    up = [_figures(gpu) for gpu in history if gpu.up]
    loaded = [each for each in up if each.loaded_link]
    slow = [each.reading for each in loaded if (each.loaded_link or 0.0) < 1.0]
    seen = {reason for each in up for reason in each.faults}
    last = history[-1]
    return Card(
        gpu=last.gpu,
        utilization_ratio=mean([each.utilization for each in up]),
        sm_active_ratio=mean([each.sm for each in up]),
        tensor_active_ratio=mean([each.tensor for each in up]),
        dram_active_ratio=mean([each.dram for each in up]),
        power_ratio=mean([each.power for each in up]),
        fault_throttle_share=mean([each.fault for each in up]),
        fault_throttles=tuple(reason for reason in FAULT_THROTTLES if reason in seen),
        power_cap_share=mean([each.capped for each in up]),
        power_limit_ratio=_power_limit_ratio(last),
        clock_ratio=mean([each.clock for each in up if each.works]),
        works=any(each.works for each in up) if any(each.utilization is not None for each in up) else None,
        uncorrectable_errors=_increase(history, lambda gpu: gpu.ecc_errors_total.get("uncorrectable")),
        serious_xids=_serious_xids(history),
        recovery_action=action if (action := last.recovery_action) != "none" else None,
        rows_failed=bool(last.remapped_rows.get("failure")),
        link_ratio=mean([each.loaded_link for each in loaded]),
        link_slow_share=len(slow) / len(loaded) if loaded else None,
        link=_link_words(slow[-1]) if slow else "",
        link_busy_ratio=mean([each.link_busy for each in loaded]),
        pcie_bytes_per_second=mean([each.pcie for each in up]),
        nvlinks_lost=_nvlinks_lost([each.reading for each in up]),
    )


class _Figures(NamedTuple):
    """What one reading says, with nothing else looked at."""

    utilization: float | None
    sm: float | None
    tensor: float | None
    dram: float | None
    power: float | None
    clock: float | None
    fault: float | None
    capped: float | None
    faults: tuple[ThrottleReason, ...]
    loaded_link: float | None  # PCIe link ratio, under load alone
    link_busy: float | None  # the same of its traffic
    pcie: float | None
    works: bool
    reading: GpuReading


@once_each(4096)  # a minute of 64 cards, some ten megabytes: each is looked at in every tick of the window
def _figures(gpu: GpuReading) -> _Figures:
    active, loaded = gpu.throttle_active, (gpu.utilization_ratio or 0.0) >= LOADED_RATIO
    return _Figures(
        utilization=gpu.utilization_ratio,
        sm=gpu.sm_active_ratio,
        tensor=gpu.tensor_active_ratio,
        dram=gpu.dram_active_ratio,
        power=ratio(gpu.power_watts, gpu.power_limit_watts),
        clock=_clock_ratio(gpu),
        fault=_active(gpu, FAULT_THROTTLES),
        capped=_active(gpu, POWER_CAP),
        faults=tuple(reason for reason in FAULT_THROTTLES if (known(active.get(reason)) or 0) > 0),
        loaded_link=_link_ratio(gpu) if loaded else None,
        link_busy=_link_busy(gpu) if loaded else None,
        pcie=total([gpu.pcie_receive_bytes_per_second, gpu.pcie_transmit_bytes_per_second]),
        works=gpu.utilization_ratio is None or gpu.utilization_ratio >= WORKING_RATIO,
        reading=gpu,
    )


def _link_ratio(gpu: GpuReading) -> float | None:
    """A card with links of its own to the CPU, or that shares the CPU's memory, does not live by its PCIe link, and
    what it says of it may be nonsense."""
    if gpu.c2c_links or gpu.memory_model == "unified":
        return None
    best = _pcie(gpu.pcie_link_generation_max, gpu.pcie_link_width_max)
    return ratio(_pcie(gpu.pcie_link_generation, gpu.pcie_link_width), best)


def _pcie(generation: float | None, lanes: float | None) -> float | None:
    return None if generation is None or lanes is None else pcie_bytes_per_second(generation, lanes)


def _link_busy(gpu: GpuReading) -> float | None:
    """The busier direction."""
    traffic = [known(gpu.pcie_receive_bytes_per_second), known(gpu.pcie_transmit_bytes_per_second)]
    busier = max((value for value in traffic if value is not None), default=None)
    return ratio(busier, _pcie(gpu.pcie_link_generation, gpu.pcie_link_width))


def _nvlinks_lost(history: Sequence[GpuReading]) -> float | None:
    """Links that nothing is plugged into are down all the time, and are none of these."""
    if not history or not history[-1].nvlinks:
        return None
    down = {link.link for link in history[-1].nvlinks if link.up is False}
    return float(len(down & {link.link for gpu in history for link in gpu.nvlinks if link.up})) if down else 0.0


def _power_limit_ratio(gpu: GpuReading) -> float | None:
    card = gpu_by_name(gpu.name) if gpu.name else None
    return ratio(gpu.power_limit_watts, card.tdp_watts) if card else None


def _link_words(gpu: GpuReading) -> str:
    return (
        f"generation {gpu.pcie_link_generation:.0f} of {gpu.pcie_link_generation_max:.0f}, "
        f"{gpu.pcie_link_width:.0f} of {gpu.pcie_link_width_max:.0f} lanes"
    )


def _serious_xids(history: Sequence[GpuReading]) -> dict[str, float]:
    """The counter of a code appears with its first event, so one that is missing is 0."""
    if not history[-1].xid_errors_total:
        return {}
    events = {code: _increase(history, partial(_xids, code)) for code in SERIOUS_XIDS}
    return {code: number for code, number in events.items() if number}


def _xids(code: str, gpu: GpuReading) -> float:
    return gpu.xid_errors_total.get(code, 0.0)


def _increase(history: Sequence[GpuReading], pick: Callable[[GpuReading], float | None]) -> float | None:
    """Increase of a counter since the window began; nothing is known of the one interval in which it began anew."""
    values = [value for gpu in history if (value := known(pick(gpu))) is not None]
    return known(sum(max(0.0, after - before) for before, after in pairwise(values))) if values else None


def _clock_ratio(gpu: GpuReading) -> float | None:
    domain = "sm" if "sm" in gpu.clock_hertz else "graphics"
    return ratio(gpu.clock_hertz.get(domain), gpu.clock_max_hertz.get(domain))


def _active(gpu: GpuReading, reasons: Sequence[ThrottleReason]) -> float | None:
    """1 when any of these throttles is active, else 0; ``None`` when the card tells of none."""
    active = gpu.throttle_active
    flags = [value for reason in reasons if (value := known(active.get(reason))) is not None]
    return float(max(flags) > 0) if flags else None
