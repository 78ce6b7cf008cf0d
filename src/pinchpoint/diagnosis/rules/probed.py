"""The classes of an engine that exposes nothing: an OpenAI-compatible server seen by our own probes and its GPUs.

Claims: idle (probes are answered on time, the GPUs rest), healthy (on time, the GPUs work), scheduler (a probe waits
far longer for its first token than its answer takes, the tokens come at their pace, and the GPUs have time left: one
request at a time), compute (late, and the GPUs never rest). Beside these, network where answers come whole, and
memory_growth. Decides: the probes' TTFT and TPOT against the objectives. No more than ``MOST`` of any: nobody has seen
a queue, and NVML utilisation is a share of time. Without a probe only idle can be told, and by the GPUs alone. Advice:
serve with an engine that batches, and that has metrics.
"""

from pinchpoint.diagnosis.judgement import Judgement, count, duration, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.probed import Probed
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence

MOST = 0.6

_UNSEEN = ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "generation_tokens_per_second")


def quiet(signals: Signals, thresholds: Thresholds) -> Judgement:
    probed = _probed(signals)
    resting = probed.probe_gpu_resting_share
    if resting is None or _fails(probed):
        return Judgement(bottleneck=Bottleneck.IDLE, score=None, missing=_missing(probed))
    rests = resting >= thresholds.gpu_resting_share and _late(signals) is not True
    return Judgement(
        bottleneck=Bottleneck.IDLE,
        score=MOST if rests else 0.0,
        why="its GPUs rest but for our own probes" if probed.probes_ok else "its GPUs rest",
        evidence=lambda: gathered(_resting(probed), *_latency(signals)),
        missing=_missing(probed),
        gate=rests,
    )


def on_time(signals: Signals, thresholds: Thresholds) -> Judgement:  # noqa: ARG001 - every rule has this signature
    probed, late = _probed(signals), _late(signals)
    if late is None:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=None, missing=_missing(probed))
    whole = signals.way is not None and (signals.way.probe_buffered_share or 0.0) > 0.5  # longer ones will be late
    well = not late and not whole and not _fails(probed)
    return Judgement(
        bottleneck=Bottleneck.HEALTHY,
        score=MOST if well else 0.0,
        why="our own probes are answered on time",
        evidence=lambda: _latency(signals),
        contradicted_by=() if well else _latency(signals),
        missing=_missing(probed),
        gate=well,
    )


def one_at_a_time(signals: Signals, thresholds: Thresholds) -> Judgement:
    probed = _probed(signals)
    ttft, answer, used = probed.probe_ttft_seconds, probed.probe_answer_seconds, probed.probe_gpu_utilization_ratio
    if ttft is None or not answer:
        return Judgement(bottleneck=Bottleneck.SCHEDULER, score=None, missing=_missing(probed))
    waits = ramp(ttft / answer, 1.0, thresholds.probe_wait_answers) * float(ttft > signals.slo.ttft_seconds)
    at_pace = (probed.probe_tpot_seconds or 0.0) <= signals.slo.tpot_seconds
    if used is None:
        free = 0.85
    elif used < thresholds.gpu_free_ratio or (probed.probe_gpu_resting_share or 0.0) >= thresholds.gpu_gaps_share:
        free = 1.0
    else:
        free = 0.3
    times = f"{{value}} to the first token, {ttft / answer:.0f} times as long as the answer itself"
    return Judgement(
        bottleneck=Bottleneck.SCHEDULER,
        score=MOST * waits * free * (1.0 if at_pace else 0.5),
        why="a request waits for others to end while the GPU has time left: it serves one at a time (inferred)",
        evidence=lambda: gathered(
            fact("probe_ttft_seconds", ttft, times, duration, signals.slo.ttft_seconds),
            _pace(signals),
            _used(probed),
            _resting(probed),
        ),
        contradicted_by=gathered(_used(probed)) if free < 0.5 else (),
        missing=_missing(probed),
    )


def never_rests(signals: Signals, thresholds: Thresholds) -> Judgement:
    probed, late, used = _probed(signals), _late(signals), _probed(signals).probe_gpu_utilization_ratio
    if late is None or used is None:
        return Judgement(bottleneck=Bottleneck.COMPUTE, score=None, missing=_missing(probed))
    tensor = signals.devices.gpu_tensor_active_ratio
    rests = tensor is not None and tensor < thresholds.tensor_active_begins
    return Judgement(
        bottleneck=Bottleneck.COMPUTE,
        score=MOST
        * float(late)
        * ramp(used, thresholds.gpu_free_ratio, thresholds.gpu_hot_ratio)
        * (0.5 if rests else 1),
        why="our own probes are late, and its GPUs never rest",
        evidence=lambda: gathered(*_latency(signals), _used(probed)),
        contradicted_by=gathered(
            fact("gpu_tensor_active_ratio", tensor if rests else None, "tensor cores {value}", percent)
        ),
        missing=_missing(probed),
    )


def _probed(signals: Signals) -> Probed:
    return signals.probed or Probed()


def _late(signals: Signals) -> bool | None:
    """Whether a probe's mean misses an objective; ``None`` when none came back."""
    probed = _probed(signals)
    if probed.probe_ttft_seconds is None:
        return None
    slow = probed.probe_tpot_seconds is not None and probed.probe_tpot_seconds > signals.slo.tpot_seconds
    return probed.probe_ttft_seconds > signals.slo.ttft_seconds or slow


def _fails(probed: Probed) -> bool:
    return probed.probes_failed > probed.probes_ok


def _missing(probed: Probed) -> tuple[str, ...]:
    return (
        missing_of(own_probes=probed.probes_ok or None, gpu_utilization_ratio=probed.probe_gpu_utilization_ratio)
        + _UNSEEN
    )


def _latency(signals: Signals) -> tuple[Evidence, ...]:
    probed = _probed(signals)
    text = f"{count(probed.probes_ok)} probes: {{value}} to the first token, objective {{threshold}}"
    return gathered(
        fact("probe_ttft_seconds", probed.probe_ttft_seconds, text, duration, signals.slo.ttft_seconds), _pace(signals)
    )


def _pace(signals: Signals) -> Evidence | None:
    pace = _probed(signals).probe_tpot_seconds
    return fact(
        "probe_tpot_seconds", pace, "{value} a token, objective {threshold}", duration, signals.slo.tpot_seconds
    )


def _used(probed: Probed) -> Evidence | None:
    return fact(
        "probe_gpu_utilization_ratio", probed.probe_gpu_utilization_ratio, "its GPUs work {value} of the time", percent
    )


def _resting(probed: Probed) -> Evidence | None:
    return fact(
        "probe_gpu_resting_share", probed.probe_gpu_resting_share, "they rest in {value} of the readings", percent
    )
