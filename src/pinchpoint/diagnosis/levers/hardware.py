"""Levers on a card that is sick or held back: cool, power, reseat, drain, reset. Each text names the cards."""

from collections.abc import Sequence

from pinchpoint.diagnosis.card import HEAT, Card
from pinchpoint.diagnosis.consistency import names
from pinchpoint.diagnosis.judgement import percent
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.verdict import Advice
from pinchpoint.snapshot import ThrottleReason


def check_cooling(situation: Situation) -> Advice | None:
    held = _held_back(situation)
    hot = [card for card in held if _flagged(card, *HEAT) or _either(card)]
    if not hot or not _faulty(situation):
        return None
    return Advice(
        action="check_cooling",
        text=f"Check airflow, inlet temperature and fans of {_gpus(hot)}.",
        reason=_throttled(hot, "heat"),
        effect=_clock(hot),
    )


def check_power(situation: Situation) -> Advice | None:
    held = _held_back(situation)
    if _faulty(situation):
        held = [card for card in held if _flagged(card, ThrottleReason.HW_POWER_BRAKE) or _either(card)]
    if not held:
        return None
    return Advice(
        action="check_power",
        text=f"Check power supply, cables and power limit of {_gpus(held)}.",
        reason=_throttled(held, "power"),
        effect=_clock(held),
    )


def check_pcie_link(situation: Situation) -> Advice | None:
    slow = [card for card in situation.signals.devices.cards if card.link_slow_share]
    if not slow or _broken(situation) or _held_back(situation):
        return None
    return Advice(
        action="check_pcie_link",
        text=f"Reseat {_gpus(slow)}; check riser, slot and the BIOS setting of the link (nvidia-smi -q, GPU Link "
        "Info).",
        reason="; ".join(f"GPU {card.gpu} is at {card.link}" for card in slow if card.link) or None,
        risk="The card has to be taken out of service for it.",
    )


def drain_gpu(situation: Situation) -> Advice | None:
    gpus = _broken(situation) or [card.gpu for card in _held_back(situation)]
    if not gpus:
        return None
    return Advice(
        action="drain_gpu",
        text=f"Take the engine of {names(gpus)} out of rotation; read the kernel log for an Xid (dmesg | grep -i xid).",
        risk=_without_it(situation),
    )


def reset_gpu(situation: Situation) -> Advice | None:
    gpus = _broken(situation)
    if not gpus:
        return None
    return Advice(
        action="reset_gpu",
        text=f"Reset {names(gpus)} (nvidia-smi --gpu-reset -i {','.join(gpus)}) or reboot; replace what fails again.",
        risk="A reset ends whatever runs on the card.",
    )


def _broken(situation: Situation) -> list[str]:
    """Lost, hung, in error, due for recovery or without some of its NVLinks: what no cooling mends."""
    devices = situation.signals.devices
    if devices.sick:
        return [gpu.gpu for gpu in devices.sick]
    failed = [card.gpu for card in devices.cards if card.serious_xids or card.uncorrectable_errors]
    due = [card.gpu for card in devices.cards if card.recovery_action or card.rows_failed]
    return failed or due or [card.gpu for card in devices.cards if card.nvlinks_lost]


def _held_back(situation: Situation) -> list[Card]:
    """The slowest first."""
    if _broken(situation):
        return []
    thresholds = situation.thresholds
    held = [
        card
        for card in situation.signals.devices.cards
        if (card.fault_throttle_share or 0.0) > thresholds.throttle_share_begins
        or (
            not _faulty(situation) and card.power_cap_share and (card.clock_ratio or 1.0) < thresholds.clock_crawl_ratio
        )
    ]
    return sorted(held, key=lambda card: 1.0 if card.clock_ratio is None else card.clock_ratio)


def _faulty(situation: Situation) -> bool:
    share = situation.signals.devices.gpu_fault_throttle_share
    return share is not None and share > situation.thresholds.throttle_share_begins


def _flagged(card: Card, *reasons: ThrottleReason) -> bool:
    return any(reason in card.fault_throttles for reason in reasons)


def _either(card: Card) -> bool:
    """``hw_slowdown`` alone is heat or the power brake: the driver does not tell which."""
    return not _flagged(card, *HEAT, ThrottleReason.HW_POWER_BRAKE)


def _throttled(cards: Sequence[Card], by: str) -> str | None:
    shares = [card.fault_throttle_share or card.power_cap_share for card in cards]
    worst = max((share for share in shares if share is not None), default=None)
    return None if worst is None else f"throttled by {by} in {percent(worst)} of the readings"


def _clock(cards: Sequence[Card]) -> str | None:
    slowest = min((card.clock_ratio for card in cards if card.clock_ratio), default=None)
    if slowest is None or slowest >= 1:
        return None
    return f"the SM clock is at {percent(slowest)} of its maximum: up to {1 / slowest:.1f} times as fast without it"


def _without_it(situation: Situation) -> str:
    others = situation.replicas - 1
    return f"{others} of {others + 1} replicas carry its load meanwhile." if others else "Nobody serves meanwhile."


def _gpus(cards: Sequence[Card]) -> str:
    return names([card.gpu for card in cards])
