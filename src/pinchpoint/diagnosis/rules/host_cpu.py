"""host_cpu: the host can't feed the GPUs.

Claims: requests are late because CPU work stands between the GPU's steps, or before a request is even queued.
Decides, of the steps: the GPU rests in each of them. ``host_gap_ratio`` is a step less its busy time: kernels that wait
for a peer, throttled clocks and slow memory all count as busy, so what is left is the host. Without the GPU's word:
steps that the GPU's own work explains badly, and a container that is throttled or under CPU pressure.
Decides, of requests: TTFT is missed, nothing waits in the queue, and queue and prefill together are a small part of it.
Supports: cgroup periods in which the quota was used up, CPU pressure, fewer cores than front end, engine core and ranks
need (vLLM's guide to CPU resources). Contradicted by: a GPU that never rests; tokens that would be late without the gap
too; KV cache or batch slots that hold the queue. An engine core that spins at 100 % of a core is normal, and pressure
by another tenant without late steps hurts nobody.
Fallback: by gaps alone at most 0.8, by a throttled host and slow steps alone likewise. Without the GPU's word, steps
that its own work does not explain are a suspicion, at most 0.3, which is never named; without any it abstains.
Advice: more CPU for the container, then less work per step.
"""

from pinchpoint.diagnosis.judgement import Judgement, count, duration, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.pace import explained_at_clock, late_anyway
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def host_cpu(signals: Signals, thresholds: Thresholds) -> Judgement:
    host, strain = signals.host, strain_of(signals, thresholds)
    missing = missing_of(
        host_cpu_throttled_ratio=host.host_cpu_throttled_ratio,
        host_cpu_pressure_ratio=host.host_cpu_pressure_ratio,
        gpu_utilization_ratio=signals.devices.gpu_utilization_ratio,
    )
    if host.host_gap_ratio is None and host.host_admission_seconds is None and _starved(signals, thresholds) is None:
        return Judgement(bottleneck=Bottleneck.HOST_CPU, score=None, missing=missing)
    steps, before = _steps(signals, strain, thresholds), _before_the_queue(signals, strain, thresholds)
    return Judgement(
        bottleneck=Bottleneck.HOST_CPU,
        score=max(steps, before) * (0.0 if signals.load.moved is False else 1.0),
        why=_why(signals, thresholds, of_steps=steps >= before),
        evidence=lambda: (*_evidence(signals, thresholds, of_steps=steps >= before), *strain.evidence),
        contradicted_by=_against(signals, strain),
        missing=missing,
    )


def _starved(signals: Signals, thresholds: Thresholds) -> float | None:
    """How surely the engine lacks CPU (0..1), by the kernel's word; ``None`` where it says nothing."""
    host = signals.host
    if host.host_cpu_throttled_ratio is None and host.host_cpu_pressure_ratio is None and host.host_cpu_count is None:
        return None
    return max(
        0.5 * _lacks_cores(signals),
        ramp(host.host_cpu_throttled_ratio, thresholds.cpu_throttled_begins, thresholds.cpu_throttled_certain),
        ramp(host.host_cpu_pressure_ratio, thresholds.cpu_pressure_begins, thresholds.cpu_pressure_certain),
    )


def _lacks_cores(signals: Signals) -> bool:
    """Fewer than each process that spins needs for itself."""
    host = signals.host
    return host.host_cpu_count is not None and host.host_cpu_count < (host.host_cpu_cores_needed or 0.0)


def _steps(signals: Signals, strain: Strain, thresholds: Thresholds) -> float:
    """How surely the host's part of each step makes requests late (0..1)."""
    gap, starved = _gap_that_matters(signals, strain), _starved(signals, thresholds) or 0.0
    if gap is not None:
        rests = ramp(gap, thresholds.host_gap_begins, thresholds.host_gap_certain)
        degree = rests * (0.8 + 0.2 * starved)
    else:
        explained = explained_at_clock(signals, thresholds)
        slow = 0.6 if explained is None else 1.0 - ramp(explained, 0.35, 0.75)
        suspected = 0.0 if explained is None else 0.3 * slow
        degree = max(0.8 * starved * slow, suspected)
    anyway, others = late_anyway(signals, strain, thresholds), _others(signals, strain, thresholds)
    return strain.suffering * degree * (1.0 - 0.6 * anyway) * others


def _gap_that_matters(signals: Signals, strain: Strain) -> float | None:
    """Late tokens and a queue are the work of all steps; late first tokens without a queue of those with a prompt."""
    host = signals.host
    if strain.first_token_alone and host.host_prompt_share is not None:
        return host.host_prompt_share
    return host.host_gap_ratio


def _others(signals: Signals, strain: Strain, thresholds: Thresholds) -> float:
    """A queue before something that is full is that thing's, unless quicker steps would empty it as well."""
    if strain.inter_token is not None:
        return 1.0
    load = signals.load
    kv = ramp(load.queue_held_by_kv_share, thresholds.kv_share_begins, thresholds.kv_share_certain)
    slots = ramp(load.queue_held_by_slots_share, thresholds.slots_share_begins, thresholds.slots_share_certain)
    return 1.0 - 0.5 * max(kv, slots)


def _before_the_queue(signals: Signals, strain: Strain, thresholds: Thresholds) -> float:
    """How surely requests are late before the engine core has them (0..1): all the rest of TTFT is within it."""
    before, ttft = signals.host.host_admission_seconds, signals.latency.ttft_mean_seconds
    if strain.ttft is None or before is None or ttft is None:
        return 0.0
    share = ramp(ratio(before, ttft), thresholds.admission_share_begins, thresholds.admission_share_certain)
    matters = ramp(ratio(before, signals.slo.ttft_seconds), 0.2, 0.5)
    return 0.95 * share * matters * (1.0 - strain.queue)


def _against(signals: Signals, strain: Strain) -> tuple[Evidence, ...]:
    gap = signals.host.host_gap_ratio
    busy = gap is not None and gap < 0.1 and strain.any
    return gathered(
        fact("host_gap_ratio", gap if busy else None, "the GPU rests only {value} of a step", percent),
    )


def _why(signals: Signals, thresholds: Thresholds, *, of_steps: bool) -> str:
    if not of_steps:
        return "requests are late before the engine has them: its front end can't keep up"
    if (_starved(signals, thresholds) or 0.0) >= 0.5:
        return "the container lacks CPU, so the GPUs wait for the host between steps"
    return "the GPUs wait for the host between steps"


def _evidence(signals: Signals, thresholds: Thresholds, *, of_steps: bool) -> tuple[Evidence, ...]:
    host = signals.host
    throttled, pressure = host.host_cpu_throttled_ratio, host.host_cpu_pressure_ratio
    return gathered(
        fact(
            "host_admission_seconds",
            None if of_steps else host.host_admission_seconds,
            "{value} of a request's TTFT pass before it is queued",
            duration,
        ),
        fact(
            "host_gap_ratio",
            host.host_gap_ratio if of_steps else None,
            "in {value} of a step's time no kernel runs, a GPU at work rests less than {threshold}",
            percent,
            thresholds.host_gap_begins,
        ),
        fact(
            "host_cpu_throttled_ratio",
            throttled if (throttled or 0.0) >= thresholds.cpu_throttled_begins else None,
            "the CPU quota was used up in {value} of its periods",
            percent,
            thresholds.cpu_throttled_begins,
        ),
        fact(
            "host_cpu_pressure_ratio",
            pressure if (pressure or 0.0) >= thresholds.cpu_pressure_begins else None,
            "a task waited for a CPU {value} of the time",
            percent,
            thresholds.cpu_pressure_begins,
        ),
        fact(
            "host_cpu_count",
            host.host_cpu_count if _lacks_cores(signals) else None,
            "{value} CPUs; front end, engine core and ranks need {threshold}",
            count,
            host.host_cpu_cores_needed,
        ),
    )
