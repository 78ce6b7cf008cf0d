"""hardware: a card is sick, or is held back by heat or power.

Claims: a GPU of the engine is lost, hung or needs a reset; or reports serious errors; or runs slower under load because
of a fault throttle (thermal, power brake, hardware slowdown).
Decides: GPU state; fault-throttle share of the readings; serious Xid or uncorrectable ECC within the window.
Supports: SM clock well below its maximum; missed objectives. A throttle with neither is a warning, not the class.
Contradicted by: an engine that works within its objectives, when it is not declared that the sick card is its own.
The software power cap is normal operation and no fault, unless the clock crawls below ``clock_crawl_ratio``.
Fallback: without GPU readings it abstains. Advice: drain, cool, reset, replace.
"""

from pinchpoint.diagnosis.devices import Devices
from pinchpoint.diagnosis.judgement import Judgement, count, fact, gathered, percent, ramp
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Evidence

_DRAIN = Advice(action="drain_gpu", text="Take this GPU's engine out of rotation; read the kernel log for its Xid.")
_RESET = Advice(action="reset_gpu", text="Reset the GPU (nvidia-smi --gpu-reset) or reboot; replace it if it recurs.")
_COOL = Advice(action="check_cooling", text="Check airflow, inlet temperature, fans, power cables and power limit.")


def hardware(signals: Signals, thresholds: Thresholds) -> Judgement:
    devices = signals.devices
    if devices.gpus is None:
        return Judgement(bottleneck=Bottleneck.HARDWARE, score=None, missing=("gpu_readings",))
    found = (_sick(signals, thresholds), _errors(signals, thresholds), _throttle(signals, thresholds))
    return max(found, key=lambda judgement: judgement.score or 0.0)


def _sick(signals: Signals, thresholds: Thresholds) -> Judgement:
    sick = signals.devices.sick
    if not sick:
        return _hardware(0.0, thresholds)
    evidence = tuple(
        Evidence(
            signal="gpus_sick", text=f"GPU {gpu.gpu} is {gpu.state}{f': {gpu.detail}' if gpu.detail else ''}", value=1.0
        )
        for gpu in sick
    )
    if signals.devices.declared:
        score = 1.0
    else:
        score = 0.3 if signals.load.moved and not strain_of(signals, thresholds).any else 0.9
    return _hardware(score, thresholds, evidence, (_DRAIN, _RESET))


def _errors(signals: Signals, thresholds: Thresholds) -> Judgement:
    devices = signals.devices
    events = (devices.gpu_serious_xids or 0.0) + (devices.gpu_uncorrectable_errors or 0.0)
    evidence = gathered(
        fact("gpu_serious_xids", devices.gpu_serious_xids or None, "{value} serious Xid events", count),
        fact(
            "gpu_uncorrectable_errors", devices.gpu_uncorrectable_errors or None, "{value} uncorrectable errors", count
        ),
    )
    return _hardware(0.9 if events else 0.0, thresholds, evidence, (_DRAIN, _RESET))


def _throttle(signals: Signals, thresholds: Thresholds) -> Judgement:
    """How often it throttles, times how far it shows: 1 with slow clocks and missed objectives, 0.8 with either.

    A card that nobody declared as the engine's own has to hurt the engine to count.
    """
    devices, strain = signals.devices, strain_of(signals, thresholds)
    if not signals.load.moved:  # without load a flag hurts nobody
        return _hardware(0.0, thresholds)
    clock = devices.gpu_clock_ratio
    slow = clock is not None and clock < thresholds.clock_slow_ratio
    crawls = clock is not None and clock < thresholds.clock_crawl_ratio
    often = ramp(devices.gpu_fault_throttle_share, thresholds.throttle_share_begins, thresholds.throttle_share_certain)
    shows = {0: 0.4, 1: 0.8, 2: 1.0}[slow + strain.any] if devices.declared or strain.any else 0.4
    evidence = _throttle_evidence(devices, thresholds) + strain.evidence
    capped = 0.7 * (devices.gpu_power_cap_share or 0.0) if crawls and strain.any else 0.0
    return _hardware(max(often * shows, capped), thresholds, evidence, (_COOL, _DRAIN))


def _throttle_evidence(devices: Devices, thresholds: Thresholds) -> tuple[Evidence, ...]:
    faults, capped = devices.gpu_fault_throttle_share or None, devices.gpu_power_cap_share or None
    return gathered(
        fact(
            "gpu_fault_throttle_share",
            faults,
            "thermal or power-brake throttle in {value} of the readings, {threshold} is tolerated",
            percent,
            thresholds.throttle_share_begins,
        ),
        fact("gpu_clock_ratio", devices.gpu_clock_ratio, "SM clock at {value} of its maximum", percent),
        fact("gpu_power_cap_share", capped, "at the power cap in {value} of the readings", percent),
    )


def _hardware(
    score: float, thresholds: Thresholds, evidence: tuple[Evidence, ...] = (), advice: tuple[Advice, ...] = ()
) -> Judgement:
    return Judgement(
        bottleneck=Bottleneck.HARDWARE,
        score=score,
        why="; ".join(each.text for each in evidence),
        evidence=evidence if score else (),
        advice=advice,
        gate=score >= thresholds.name_score,
    )
