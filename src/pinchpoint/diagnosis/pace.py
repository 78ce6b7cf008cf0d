"""What sets the pace of the engine's steps: computing, or moving bytes. Degrees (0..1), ``None`` is unknown.

Two facts make one: whose time a step's is by the roofline of the actual model and cards, and how near the cards are to
that limit. Neither being near is a host that rests between steps, slow clocks or a slow link.
"""

from pinchpoint.diagnosis.judgement import duration, fact, gathered, percent, ramp
from pinchpoint.diagnosis.signals import Signals
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


def paced_by_compute(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely steps take as long as their FLOPs; ``None`` without a roofline, or without any duty."""
    share, duty = signals.roofline.roofline_compute_share, compute_duty(signals)
    if share is None or duty is None:
        return None
    theirs = ramp(share, thresholds.compute_share_begins, thresholds.compute_share_certain)
    return theirs * ramp(duty, thresholds.tensor_active_begins, thresholds.tensor_active_certain)


def paced_by_memory(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely steps take as long as their bytes; ``None`` without a measured or expected bandwidth.

    Without a roofline busy tensor cores speak against it.
    """
    duty = memory_duty(signals)
    if duty is None:
        return None
    share, tensor = signals.roofline.roofline_compute_share, signals.devices.gpu_tensor_active_ratio
    theirs = (
        ramp(tensor, thresholds.tensor_active_begins, thresholds.tensor_active_certain)
        if share is None
        else ramp(share, thresholds.compute_share_begins, thresholds.compute_share_certain)
    )
    return (1.0 - theirs) * ramp(duty, thresholds.bandwidth_begins, thresholds.bandwidth_certain)


def tokens_leave_no_room(signals: Signals, thresholds: Thresholds) -> float:
    """How surely more running requests would only make tokens late (0..1): they are at their objective already, or
    would miss it by far if all who wait ran too."""
    objective = signals.slo.tpot_seconds
    now, then = signals.inter_token.judged_seconds, signals.roofline.inter_token_if_admitted_seconds
    if not objective or now is None:
        return 0.0
    tight = ramp(now / objective, thresholds.tpot_room_ratio, 1.1)
    return max(tight, 0.4 * ramp(None if then is None else then / objective, 1.0, 2.0))


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


def _possible(ratio: float | None) -> float | None:
    return ratio if ratio is not None and ratio <= _IMPOSSIBLE else None
