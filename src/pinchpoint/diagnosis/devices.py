"""How the engine's own GPUs fare. NVML utilisation is a share of time with a kernel resident, never a share of peak."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from pinchpoint.diagnosis.card import Card, card_of, histories_of
from pinchpoint.diagnosis.rates import mean, total
from pinchpoint.snapshot import GpuReading, GpuState, Snapshot


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


def devices_of(snapshots: tuple[Snapshot, ...], engine: str, declared: tuple[str, ...]) -> Devices:
    """The GPUs ``declared`` for the engine; without a declaration all of them when it is the only engine, else none."""
    if not snapshots or (not declared and snapshots[-1].engine_names() != (engine,)):
        return Devices()
    histories = {who: each for who, each in histories_of(snapshots).items() if not declared or who[0] in declared}
    if not histories:
        return Devices()
    indices = {index for index, _ in histories}
    latest = [gpu for gpu in snapshots[-1].gpus if gpu.gpu in indices]
    sick = tuple(gpu for gpu in latest if not gpu.up and gpu.state is not GpuState.ACCESS_DENIED)
    cards = tuple(card_of(history) for _, history in sorted(histories.items(), key=itemgetter(0)))

    def typical(values: Sequence[float | None]) -> float | None:
        return mean(values) if declared else _most(values)

    return Devices(
        declared=bool(declared),
        sick=sick,
        cards=cards,
        gpus=float(len(indices)),
        gpus_sick=float(len(sick)),
        gpu_utilization_ratio=typical([card.utilization_ratio for card in cards]),
        gpu_sm_active_ratio=typical([card.sm_active_ratio for card in cards]),
        gpu_tensor_active_ratio=typical([card.tensor_active_ratio for card in cards]),
        gpu_dram_active_ratio=typical([card.dram_active_ratio for card in cards]),
        gpu_power_ratio=typical([card.power_ratio for card in cards]),
        gpu_clock_ratio=_least([card.clock_ratio for card in cards]),
        gpu_fault_throttle_share=_most([card.fault_throttle_share for card in cards]),
        gpu_power_cap_share=_most([card.power_cap_share for card in cards]),
        gpu_uncorrectable_errors=total([card.uncorrectable_errors for card in cards]),
        gpu_serious_xids=total([sum(card.serious_xids.values()) for card in cards]),
        gpus_to_recover=_to_recover(latest, cards),
        gpu_pcie_link_ratio=_least([card.link_ratio for card in cards]),
        gpu_nvlinks_lost=total([card.nvlinks_lost for card in cards]),
    )


def _to_recover(latest: Sequence[GpuReading], cards: Sequence[Card]) -> float | None:
    if all(gpu.recovery_action is None and not gpu.remapped_rows for gpu in latest):
        return None
    return float(sum(bool(card.recovery_action or card.rows_failed) for card in cards))


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
