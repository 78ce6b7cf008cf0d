"""What sets the pace of the engine's steps: computing, or moving bytes. Degrees (0..1), ``None`` is unknown.

Two facts make one: whose time a step's is by the roofline of the actual model and cards, and how much of it that work
explains at all. The rest is a host between steps, slow clocks or a slow link.
"""

from pinchpoint.diagnosis.clock import slowdown_of
from pinchpoint.diagnosis.judgement import duration, fact, gathered, percent, ramp
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals, found_once
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Evidence

# Facts that say more than is possible are wrong: weights said to be of 16 bits that are of 8, say.
_IMPOSSIBLE = 1.1


def compute_duty(signals: Signals) -> float | None:
    """Share of the tensor peak at work: measured, else what had to be computed while requests ran, or in all time."""
    expected = _possible(signals.roofline.compute_utilization_ratio), _possible(signals.model_flops_utilization_ratio)
    told = (signals.devices.gpu_tensor_active_ratio, *expected)
    return next((duty for duty in told if duty is not None), None)


def memory_duty(signals: Signals) -> float | None:
    """Share of the memory bandwidth at work: measured, else what had to be moved while requests ran."""
    measured = signals.devices.gpu_dram_active_ratio
    return measured if measured is not None else _possible(signals.roofline.memory_bandwidth_utilization_ratio)


@found_once
def paced_by_compute(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely steps take as long as their FLOPs; ``None`` without a roofline."""
    bound = _bound(signals, thresholds)
    return None if bound is None else bound * _computes(signals, thresholds)


def paced_by_memory(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely steps take as long as their bytes. Without a roofline measured bandwidth says it, and busy tensor
    cores speak against it; ``None`` without either."""
    bound = _bound(signals, thresholds)
    if bound is not None:
        return bound * (1.0 - _computes(signals, thresholds))
    duty, tensor = memory_duty(signals), signals.devices.gpu_tensor_active_ratio
    if duty is None:
        return None
    computes = ramp(tensor, thresholds.tensor_active_begins, thresholds.tensor_active_certain)
    return (1.0 - computes) * ramp(duty, thresholds.bandwidth_begins, thresholds.bandwidth_certain)


def explained_at_clock(signals: Signals, thresholds: Thresholds) -> float | None:
    """What the GPU's own work explains of a step at the clocks that its cards have; ``None`` without a roofline."""
    explained = signals.roofline.step_explained_ratio
    return None if explained is None else explained * (1.0 + slowdown_of(signals, thresholds))


@found_once
def decode_is_late(signals: Signals, thresholds: Thresholds) -> float:
    """How surely decode alone, without any prompt between, takes longer than a token may (0..1)."""
    at_peak, objective = signals.roofline.decode_roofline_seconds, signals.slo.tpot_seconds
    if at_peak is None or objective <= 0 or _bound(signals, thresholds) is None:
        return 0.0
    return ramp(at_peak / thresholds.bandwidth_reached_ratio / objective, 0.85, 1.05)


def late_anyway(signals: Signals, strain: Strain, thresholds: Thresholds) -> float:
    """How surely tokens would be late by the GPU's own work too, were there nothing else in a step (0..1).

    Where requests queue, those that run are more than quicker steps would leave, and nothing is said.
    """
    return decode_is_late(signals, thresholds) if strain.inter_token and strain.queue < 0.5 else 0.0


def late_if_admitted(signals: Signals) -> float:
    """How surely tokens would miss their objective if all who wait ran too (0..1)."""
    return ramp(ratio(signals.roofline.inter_token_if_admitted_seconds, signals.slo.tpot_seconds), 1.0, 1.6)


def gains_by_more_running(signals: Signals) -> float:
    """How much a larger batch would gain before tokens are late (0..1): a tenth more requests is nothing, half is."""
    return ramp(signals.roofline.admission_gain_ratio, 1.1, 1.6)


@found_once
def tokens_leave_no_room(signals: Signals, thresholds: Thresholds) -> float:
    """How surely more running requests would only make tokens late (0..1): they are at their objective already, or
    would miss it if all who wait ran too."""
    now = ratio(signals.inter_token.judged_seconds, signals.slo.tpot_seconds)
    in_vain = 0.8 * late_if_admitted(signals) * (1.0 - gains_by_more_running(signals))
    return max(ramp(now, thresholds.tpot_room_ratio, 1.1), in_vain)


@found_once
def computing_leaves_no_room(signals: Signals, thresholds: Thresholds) -> float:
    """How surely more running requests would only share the FLOPs there are (0..1)."""
    return (paced_by_compute(signals, thresholds) or 0.0) * (1.0 - gains_by_more_running(signals))


@found_once
def unseen_work(signals: Signals, thresholds: Thresholds) -> float:
    """How surely preempted requests are computed again (0..1): steps take far longer than the tokens that count."""
    preempted = ratio(signals.load.preemptions_per_second, signals.load.requests_started_per_second)
    explained = signals.roofline.step_explained_ratio
    if explained is None:
        return ramp(preempted, 0.0, thresholds.preempted_share)
    return ramp(preempted, 0.0, thresholds.preempted_share) * (1.0 - ramp(explained, 0.35, 0.6))


@found_once
def _bound(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely the GPU's own work paces the steps (0..1): expected of the work, or measured, or their mean."""
    explained, devices = explained_at_clock(signals, thresholds), signals.devices
    if explained is None or signals.roofline.roofline_compute_share is None:
        return None
    if _possible(signals.roofline.memory_bandwidth_utilization_ratio) is None:
        return None
    tensor, dram = devices.gpu_tensor_active_ratio, devices.gpu_dram_active_ratio
    if tensor is not None and dram is not None:
        measured = tensor / thresholds.flops_reached_ratio + dram / thresholds.bandwidth_reached_ratio
        explained = (min(1.0, explained) + min(1.0, measured)) / 2
    return ramp(explained, thresholds.step_explained_begins, thresholds.step_explained_certain)


@found_once
def _computes(signals: Signals, thresholds: Thresholds) -> float:
    """How surely the GPU's work that makes requests late is computing. Where no queue lasts, late tokens are late by
    what their steps take longer than decode of the running requests would: the prompts between. Everything else is late
    by the time that all steps take."""
    share = signals.roofline.roofline_compute_share
    strain = strain_of(signals, thresholds)
    decode, now = signals.roofline.decode_roofline_seconds, signals.inter_token.judged_seconds
    if strain.inter_token and strain.queue < 0.5 and decode is not None and now:
        rest = now * (1.0 - min(1.0, signals.roofline.step_explained_ratio or 0.0))
        usual = decode / thresholds.bandwidth_reached_ratio
        share = ratio(prompts := max(0.0, now - usual - rest), prompts + usual)
    return ramp(share, thresholds.compute_share_begins, thresholds.compute_share_certain)


def more_running_harms(signals: Signals, late: float, computing: float) -> tuple[Evidence, ...]:
    """Why more running requests would not help, where they would not: for both limits that hold requests back."""
    return gathered(
        fact(
            "inter_token_mean_seconds",
            signals.inter_token.judged_seconds if late >= 0.5 else None,
            "a larger batch makes tokens later: they take {value} already, objective {threshold}",
            duration,
            signals.slo.tpot_seconds,
        ),
        fact(
            "inter_token_if_admitted_seconds",
            signals.roofline.inter_token_if_admitted_seconds if 0.1 <= late < 0.5 else None,
            "with all who wait running, a token would take {value}, objective {threshold}",
            duration,
            signals.slo.tpot_seconds,
        ),
        fact(
            "roofline_compute_share",
            signals.roofline.roofline_compute_share if computing >= 0.3 else None,
            "computing takes {value} of a step's time: a larger batch only makes steps longer",
            percent,
        ),
    )


def _possible(duty: float | None) -> float | None:
    return duty if duty is not None and duty <= _IMPOSSIBLE else None
