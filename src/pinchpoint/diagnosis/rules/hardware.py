"""hardware: a card is sick, or is held back by heat or power, or by the slot it sits in.

Claims: a GPU of the engine is lost, hung or needs a reset; or reports serious errors; or the driver asks for its
recovery; or runs slower under load because of a fault throttle (thermal, power brake, hardware slowdown); or a link of
its is below what card and slot can do.
Decides: GPU state; serious Xid or uncorrectable ECC within the window; recovery action and failed row remapping, with
missed objectives; fault throttle, with a slow SM clock under load and missed objectives; NVLinks that went down; link
generation and width of busy cards, by how busy the link is.
Supports: how much longer steps take at that clock: computing as much as the clock is slower, reading memory less.
Contradicted by: an engine that works within its objectives, when it is not declared that the sick card is its own; a
clock near its maximum; a card that rests. A throttle that delays nobody is a warning, not the class.
The software power cap is normal operation and no fault, unless somebody lowered the limit so far that the clock crawls
below ``clock_crawl_ratio``.
Fallback: without GPU readings it abstains; without clocks the flags count, at most 0.8.
Advice: drain, cool, reset, replace.
"""

from collections.abc import Sequence

from pinchpoint.diagnosis.card import HEAT, SERIOUS_XIDS, Card
from pinchpoint.diagnosis.clock import quicker_at_full_clock
from pinchpoint.diagnosis.consistency import names
from pinchpoint.diagnosis.judgement import Judgement, count, fact, gathered, percent, ramp
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence
from pinchpoint.snapshot import GpuReading, GpuState, ThrottleReason

_STATES = {
    GpuState.LOST: "is lost",
    GpuState.RESET_REQUIRED: "needs a reset",
    GpuState.HUNG: "hangs",
}
_WELL = Judgement(bottleneck=Bottleneck.HARDWARE, score=0.0)


def hardware(signals: Signals, thresholds: Thresholds) -> Judgement:
    if signals.devices.gpus is None:
        return Judgement(bottleneck=Bottleneck.HARDWARE, score=None, missing=("gpu_readings",))
    rules = (_sick, _errors, _to_recover, _nvlinks, _throttle, _link)
    found = [rule(signals, thresholds) for rule in rules]
    return max(found, key=lambda judgement: judgement.score or 0.0)


def _sick(signals: Signals, thresholds: Thresholds) -> Judgement:
    sick = signals.devices.sick
    if not sick:
        return _WELL
    if signals.devices.declared:
        score = 1.0
    else:
        score = 0.3 if signals.load.moved and not strain_of(signals, thresholds).any else 0.9
    why = "; ".join(f"GPU {gpu.gpu} {_STATES.get(gpu.state, 'does not answer')}" for gpu in sick)
    return _hardware(score, thresholds, why, tuple(map(_sickness, sick)))


def _sickness(gpu: GpuReading) -> Evidence:
    said = gpu.detail.removeprefix(f"GPU {gpu.gpu}: ") or f"its state is {gpu.state}"
    return Evidence(signal="gpus_sick", text=f"GPU {gpu.gpu}: {said}", value=1.0)


def _errors(signals: Signals, thresholds: Thresholds) -> Judgement:
    bad = [card for card in signals.devices.cards if card.serious_xids or card.uncorrectable_errors]
    if not bad:
        return _WELL
    evidence = [
        Evidence(
            signal="gpu_serious_xids",
            text=f"GPU {card.gpu}: Xid {code} ({SERIOUS_XIDS[code]}), {count(events)} within the window",
            value=events,
        )
        for card in bad
        for code, events in card.serious_xids.items()
    ]
    for card in bad:
        errors = card.uncorrectable_errors or None
        text = f"GPU {card.gpu}: {{value}} uncorrectable memory errors within the window"
        evidence += gathered(fact("gpu_uncorrectable_errors", errors, text, count))
    gpus = [card.gpu for card in bad]
    why = f"{names(gpus)} {'reports' if len(bad) == 1 else 'report'} serious errors"
    return _hardware(0.9, thresholds, why, tuple(evidence))


def _to_recover(signals: Signals, thresholds: Thresholds) -> Judgement:
    """A standing request of the driver. While nobody suffers it is one for maintenance, not why the engine is slow."""
    bad = [card for card in signals.devices.cards if card.recovery_action or card.rows_failed]
    if not bad:
        return _WELL
    evidence = [
        Evidence(signal="gpus_to_recover", text=f"GPU {card.gpu}: {said}", value=1.0)
        for card in bad
        for said in (
            *((f"the driver asks for {card.recovery_action.replace('_', ' ')}",) if card.recovery_action else ()),
            *(("memory rows could not be remapped",) if card.rows_failed else ()),
        )
    ]
    strain = strain_of(signals, thresholds)
    gpus = [card.gpu for card in bad]
    why = f"{names(gpus)} {'is' if len(bad) == 1 else 'are'} due for recovery, and requests are late"
    score = 0.9 if strain.any else 0.4
    return _hardware(score, thresholds, why, (*evidence, *strain.evidence))


def _nvlinks(signals: Signals, thresholds: Thresholds) -> Judgement:
    """A link that was up a moment ago: a cable, a switch or the card itself. Ranks that talk over it then wait."""
    bad = [card for card in signals.devices.cards if card.nvlinks_lost]
    if not bad:
        return _WELL
    facts = [
        fact("gpu_nvlinks_lost", card.nvlinks_lost, f"GPU {card.gpu}: {{value}} NVLinks went down", count)
        for card in bad
    ]
    strain = strain_of(signals, thresholds)
    score = 0.9 if strain.any else 0.4
    gpus = [card.gpu for card in bad]
    return _hardware(score, thresholds, f"{names(gpus)} lost NVLinks", (*gathered(*facts), *strain.evidence))


def _link(signals: Signals, thresholds: Thresholds) -> Judgement:
    """Never certain where nothing is known of the traffic: then it is named only where no other class explains the
    delay better. A link at rest delays nothing, and one that is busy is what the ranks wait for."""
    strain = strain_of(signals, thresholds)
    slow = [card for card in signals.devices.cards if card.link_slow_share]
    if not slow:
        return _WELL
    score = max(_link_matters(card, thresholds) for card in slow)
    facts = [
        fact(
            "gpu_pcie_link_ratio",
            card.link_ratio,
            f"GPU {card.gpu}: PCIe link at {{value}} under load, {card.link}",
            percent,
        )
        for card in slow
    ]
    gpus = [card.gpu for card in slow]
    why = f"{names(gpus)} {'runs' if len(slow) == 1 else 'run'} below the best of the PCIe link, and requests are late"
    judgement = _hardware(
        score if strain.any else min(score, 0.3), thresholds, why, (*gathered(*facts), *strain.evidence)
    )
    return judgement._replace(gate=False)


def _link_matters(card: Card, thresholds: Thresholds) -> float:
    often = ramp(card.link_slow_share, 0.5, 0.9)
    if card.link_busy_ratio is None:
        return 0.6 * often
    busy = ramp(card.link_busy_ratio, thresholds.link_busy_begins, thresholds.link_busy_certain)
    return often * (0.3 + 0.65 * busy)


def _throttle(signals: Signals, thresholds: Thresholds) -> Judgement:
    """Of the worst card: how often it throttles, times how far that shows.

    A card that nobody declared as the engine's own has to hurt the engine to count.
    """
    devices, strain = signals.devices, strain_of(signals, thresholds)
    if not signals.load.moved:  # without load a flag hurts nobody
        return _WELL
    often = [(card, share) for card in devices.cards if (share := _often(card, thresholds))]
    fault = max((share * _shows(card, signals, thresholds) for card, share in often), default=0.0)
    capped = max((_capped(card, thresholds) for card in devices.cards), default=0.0) if strain.any else 0.0
    if not fault and not capped:
        return _WELL
    faulty = fault >= capped
    held = sorted(
        (card for card in devices.cards if _held_back(card, thresholds, faulty=faulty)),
        key=lambda card: 1.0 if card.clock_ratio is None else card.clock_ratio,
    )
    cause = _cause(held) if faulty else "its power limit"
    late = "and requests are late" if strain.any else "though no request is late yet"
    facts = [_slowness(card, thresholds, cause, faulty=faulty) for card in held]
    judgement = _hardware(
        max(fault, capped),
        thresholds,
        f"{names([card.gpu for card in held])} {'is' if len(held) == 1 else 'are'} held back by {cause}, {late}",
        (*(facts[0] if facts else ()), *strain.evidence, *(each for more in facts[1:] for each in more)),
    )
    return judgement._replace(gate=judgement.gate and fault >= thresholds.throttle_settles_score)


def _often(card: Card, thresholds: Thresholds) -> float:
    share = 0.0 if card.works is False else card.fault_throttle_share
    return ramp(share, thresholds.throttle_share_begins, thresholds.throttle_share_certain)


def _shows(card: Card, signals: Signals, thresholds: Thresholds) -> float:
    """How far a throttle of this card explains anything (0..1): a warning, 0.4, unless requests suffer and its clock is
    slow; 0.8 where one of the two can't be seen."""
    strain = strain_of(signals, thresholds)
    if not strain.any:
        unseen = signals.ttft.judged_seconds is None and signals.inter_token.judged_seconds is None
        slow = card.clock_ratio is not None and card.clock_ratio < thresholds.clock_slow_ratio
        return 0.8 if unseen and slow and signals.devices.declared else 0.4
    if card.clock_ratio is None:
        return 0.8
    quicker = quicker_at_full_clock(card.clock_ratio, signals, thresholds)
    costs = ramp(quicker, thresholds.clock_costs_begins, thresholds.clock_costs_certain)
    return (0.4 + 0.6 * costs) * (1.0 - 0.35 * _in_vain(quicker, signals, thresholds))


def _in_vain(quicker: float, signals: Signals, thresholds: Thresholds) -> float:
    """How surely requests would be late at full clocks too (0..1): also those of a replica whose cards are well, or
    tokens by far. Where requests queue, those that run are more than quicker steps would leave, and nothing is said."""
    throttled = sum(_often(card, thresholds) > 0.0 for card in signals.devices.cards)
    elsewhere = (signals.spread.replicas_overloaded or 0.0) > throttled
    if elsewhere:
        return 1.0 - ramp(quicker, 2.0, 3.0)
    if strain_of(signals, thresholds).queue >= 0.5:
        return 0.0
    tokens = ratio(signals.inter_token.judged_seconds, signals.slo.tpot_seconds) or 0.0
    return ramp(tokens / quicker, 1.3, 1.7)


def _capped(card: Card, thresholds: Thresholds) -> float:
    """Cards of little power crawl at their cap by design; a limit that somebody lowered is another matter."""
    if (card.clock_ratio or 1.0) >= thresholds.clock_crawl_ratio:
        return 0.0
    lowered = card.power_limit_ratio is not None and card.power_limit_ratio < thresholds.power_limit_lowered_ratio
    return (0.7 if lowered else 0.4) * (card.power_cap_share or 0.0)


def _held_back(card: Card, thresholds: Thresholds, *, faulty: bool) -> bool:
    return _often(card, thresholds) > 0.0 if faulty else _capped(card, thresholds) > 0.0


def _cause(cards: Sequence[Card]) -> str:
    """What the throttle flags say. ``hw_slowdown`` alone is either of the two: the driver does not tell which."""
    active = {reason for card in cards for reason in card.fault_throttles}
    causes = [
        word
        for word, found in (("heat", active & HEAT), ("the power brake", ThrottleReason.HW_POWER_BRAKE in active))
        if found
    ]
    return " and ".join(causes) or "a hardware slowdown (heat or power brake)"


def _slowness(card: Card, thresholds: Thresholds, cause: str, *, faulty: bool) -> tuple[Evidence, ...]:
    who = f"GPU {card.gpu}:"
    share, begins = card.fault_throttle_share, thresholds.throttle_share_begins
    throttled = f"{who} slowed down by {cause} in {{value}} of the readings, {{threshold}} is tolerated"
    return gathered(
        fact("gpu_fault_throttle_share", share if faulty else None, throttled, percent, begins),
        fact("gpu_clock_ratio", card.clock_ratio, f"{who} SM clock at {{value}} of its maximum", percent),
        fact(
            "gpu_power_cap_share",
            None if faulty else card.power_cap_share,
            f"{who} at the power cap in {{value}} of the readings",
            percent,
        ),
    )


def _hardware(
    score: float,
    thresholds: Thresholds,
    why: str = "",
    evidence: tuple[Evidence, ...] = (),
) -> Judgement:
    return Judgement(
        bottleneck=Bottleneck.HARDWARE,
        score=score,
        why=why if score else "",
        evidence=lambda: evidence if score else (),
        gate=score >= thresholds.name_score,
    )
