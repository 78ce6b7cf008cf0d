"""How the engine's own GPUs fare. NVML utilisation is a share of time with a kernel resident, never a share of peak."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from pinchpoint.diagnosis.identity import once_each
from pinchpoint.diagnosis.rates import known, mean, ratio, total
from pinchpoint.physics import gpu_by_name, pcie_bytes_per_second
from pinchpoint.snapshot import GpuReading, GpuState, Snapshot, ThrottleReason

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Means over the engine's GPUs and the window unless named otherwise. ``None`` is unknown.

    Where nobody declared the engine's GPUs, a ratio is that of the busiest one: the others may not be the engine's.
    """

    declared: bool = False  # the operator said which GPUs are the engine's; else the only engine has them all
    sick: tuple[GpuReading, ...] = ()  # lost, hung or in need of a reset at the newest tick
    cards: tuple[Card, ...] = ()
    gpus: float | None = None
    gpus_sick: float | None = None
    gpu_utilization_ratio: float | None = None
    gpu_sm_active_ratio: float | None = None
    gpu_tensor_active_ratio: float | None = None
    gpu_dram_active_ratio: float | None = None
    gpu_power_ratio: float | None = None  # of the power limit
    gpu_clock_ratio: float | None = None  # SM clock over its maximum, the slowest GPU
    gpu_fault_throttle_share: float | None = None  # readings with a fault throttle, the worst GPU
    gpu_power_cap_share: float | None = None  # readings at the software power cap: normal under load
    gpu_uncorrectable_errors: float | None = None  # within the window
    gpu_serious_xids: float | None = None  # within the window
    gpus_to_recover: float | None = None  # the driver asks for a reset or the like, or memory failed for good
    gpu_pcie_link_ratio: float | None = None  # under load, of the best that card and slot can do, the worst GPU
    gpu_nvlinks_lost: float | None = None  # NVLinks that went down within the window


def devices_of(snapshots: Sequence[Snapshot], engine: str, declared: tuple[str, ...]) -> Devices:
    """The GPUs ``declared`` for the engine; without a declaration all of them when it is the only engine, else none."""
    if not snapshots or (not declared and snapshots[-1].engine_names() != (engine,)):
        return Devices()
    found: dict[tuple[str, str], dict[float, GpuReading]] = {}
    for snapshot in snapshots:
        for gpu in snapshot.gpus:
            if not declared or gpu.gpu in declared:
                of_card = found.get((gpu.gpu, gpu.uuid))
                if of_card is None:
                    of_card = found[gpu.gpu, gpu.uuid] = {}
                of_card[gpu.at] = gpu
    if not found:
        return Devices()
    indices = {index for index, _ in found}
    latest = [gpu for gpu in snapshots[-1].gpus if gpu.gpu in indices]
    sick = tuple(gpu for gpu in latest if not gpu.up and gpu.state is not GpuState.ACCESS_DENIED)
    # By index and UUID (an index may pass on), oldest first
    readings = {who: tuple(by_time.values()) for who, by_time in found.items()}
    figures = {who: [_figures(gpu) for gpu in history if gpu.up] for who, history in readings.items()}
    cards = tuple(_card(who[0], history, figures[who]) for who, history in sorted(readings.items()))

    def typical(pick: Callable[[_Figures], float | None]) -> float | None:
        values = _per_gpu(figures, pick)
        return mean(values) if declared else max(values, default=None)

    return Devices(
        declared=bool(declared),
        sick=sick,
        cards=cards,
        gpus=float(len(indices)),
        gpus_sick=float(len(sick)),
        gpu_utilization_ratio=typical(_UTILIZATION),
        gpu_sm_active_ratio=typical(_SM),
        gpu_tensor_active_ratio=typical(_TENSOR),
        gpu_dram_active_ratio=typical(_DRAM),
        gpu_power_ratio=typical(_POWER),
        gpu_clock_ratio=min((card.clock_ratio for card in cards if card.clock_ratio is not None), default=None),
        gpu_fault_throttle_share=_most(cards, lambda card: card.fault_throttle_share),
        gpu_power_cap_share=_most(cards, lambda card: card.power_cap_share),
        gpu_uncorrectable_errors=total([card.uncorrectable_errors for card in cards]),
        gpu_serious_xids=total([sum(card.serious_xids.values()) for card in cards]),
        gpus_to_recover=_to_recover(latest, cards),
        gpu_pcie_link_ratio=min((card.link_ratio for card in cards if card.link_ratio is not None), default=None),
        gpu_nvlinks_lost=total([card.nvlinks_lost for card in cards]),
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


_UTILIZATION, _SM, _TENSOR, _DRAM, _POWER = (itemgetter(at) for at in range(5))


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


def _card(index: str, history: Sequence[GpuReading], up: Sequence[_Figures]) -> Card:
    loaded = [each for each in up if each.loaded_link]
    slow = [each.reading for each in loaded if (each.loaded_link or 0.0) < 1.0]
    seen = {reason for each in up for reason in each.faults}
    return Card(
        gpu=index,
        fault_throttle_share=mean([each.fault for each in up]),
        fault_throttles=tuple(reason for reason in FAULT_THROTTLES if reason in seen),
        power_cap_share=mean([each.capped for each in up]),
        power_limit_ratio=_power_limit_ratio(history[-1]),
        clock_ratio=mean([each.clock for each in up if each.works]),
        works=any(each.works for each in up) if any(each.utilization is not None for each in up) else None,
        uncorrectable_errors=_increase(history, lambda gpu: gpu.ecc_errors_total.get("uncorrectable")),
        serious_xids={code: events for code in SERIOUS_XIDS if (events := _events(history, code))},
        recovery_action=action if (action := history[-1].recovery_action) != "none" else None,
        rows_failed=bool(history[-1].remapped_rows.get("failure")),
        link_ratio=mean([each.loaded_link for each in loaded]),
        link_slow_share=len(slow) / len(loaded) if loaded else None,
        link=_link_words(slow[-1]) if slow else "",
        link_busy_ratio=mean([each.link_busy for each in loaded]),
        pcie_bytes_per_second=mean([each.pcie for each in up]),
        nvlinks_lost=_nvlinks_lost([each.reading for each in up]),
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


def _to_recover(latest: Sequence[GpuReading], cards: Sequence[Card]) -> float | None:
    if all(gpu.recovery_action is None and not gpu.remapped_rows for gpu in latest):
        return None
    return float(sum(bool(card.recovery_action or card.rows_failed) for card in cards))


def _events(history: Sequence[GpuReading], code: str) -> float | None:
    """The counter of a code appears with its first event, so one that is missing is 0."""
    return _increase(history, lambda gpu: gpu.xid_errors_total.get(code, 0.0)) if history[-1].xid_errors_total else None


def _most(cards: Sequence[Card], pick: Callable[[Card], float | None]) -> float | None:
    return max((value for card in cards if (value := pick(card)) is not None), default=None)


def _per_gpu(
    figures: Mapping[tuple[str, str], Sequence[_Figures]], pick: Callable[[_Figures], float | None]
) -> list[float]:
    means = (mean([pick(each) for each in up]) for up in figures.values())
    return [value for value in means if value is not None]


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
