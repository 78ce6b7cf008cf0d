"""Is it us or them? What a comparison with a hosted API says, as evidence and in one sentence. Never a verdict.

A local TTFT of three times a hosted API's at a GPU duty below one half speaks for the infrastructure (queue, gateway,
CPU, network) and against the model. A hosted API that is slow too speaks for what both have in common.
"""

from pinchpoint.diagnosis.compared import Compared
from pinchpoint.diagnosis.judgement import count, duration, gathered, percent
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Evidence
from pinchpoint.diagnosis.way import Way
from pinchpoint.snapshot import ProbeComparison

_ALIKE = 1.25  # times; less is noise of five probes


def us_or_them(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    """The facts, whichever class was found; none where nothing is out of the ordinary."""
    told, way = signals.compared, signals.way
    hosted = (_vain(told), _against_hosted(signals, told, thresholds)) if told is not None else ()
    return gathered(*hosted, _on_the_way(way, thresholds) if way is not None else None)


def _vain(told: Compared) -> Evidence | None:
    share = told.probe_waits_in_vain_share
    if not share or share <= 0.5:
        return None
    theirs = told.probe_hosted_ttft_seconds
    hosted = f", at the hosted API it takes {duration(theirs)}" if theirs is not None else ""
    text = f"{percent(share)} of our probes had no first token in time{hosted}"
    return Evidence(signal="probe_waits_in_vain_share", text=text, value=share, threshold=0.5)


def _against_hosted(signals: Signals, told: Compared, thresholds: Thresholds) -> Evidence | None:
    times, ours, theirs = (
        told.probe_local_to_hosted_ttft_ratio,
        told.probe_local_ttft_seconds,
        told.probe_hosted_ttft_seconds,
    )
    if times is None or ours is None or theirs is None:
        return None
    if times >= thresholds.hosted_ttft_times:
        text = f"a probe waits {duration(ours)} for its first token, {count(times)} times the hosted API's "
        text += duration(theirs) + _gpus(signals.devices.gpu_utilization_ratio, thresholds)
        limit = thresholds.hosted_ttft_times
        return Evidence(signal="probe_local_to_hosted_ttft_ratio", text=text, value=times, threshold=limit)
    slo = signals.slo.ttft_seconds
    if ours > slo and theirs > slo:
        text = f"the hosted API needs {duration(theirs)} for a first token too, objective {duration(slo)}: not us alone"
        return Evidence(signal="probe_hosted_ttft_seconds", text=text, value=theirs, threshold=slo)
    return None


def _gpus(used: float | None, thresholds: Thresholds) -> str:
    if used is None:
        return ""
    if used < thresholds.gpu_free_ratio:
        return f", while the GPUs work {percent(used)} of the time: infrastructure, not the model"
    return f", with the GPUs at work {percent(used)} of the time"


def _on_the_way(way: Way, thresholds: Thresholds) -> Evidence | None:
    client, own, share = way.probe_client_ttft_seconds, way.probe_engine_ttft_seconds, way.network_ttft_share
    if client is None or own is None or share is None or share < thresholds.network_ttft_share:
        return None
    if client - own < thresholds.network_ttft_seconds:
        return None
    text = f"of the {duration(client)} that a probe waits for its first token the engine accounts for {duration(own)}: "
    text += f"{percent(share)} is on the way (network, gateway, proxy)"
    return Evidence(signal="network_ttft_share", text=text, value=share, threshold=thresholds.network_ttft_share)


def in_a_sentence(found: ProbeComparison, thresholds: Thresholds) -> str:
    """What a comparison means, for people; the GPUs are not looked at."""
    them = " and ".join(found.hosted) if len(found.hosted) < 3 else f"{len(found.hosted)} hosted APIs"
    theirs = found.theirs.ttft_seconds
    if found.local.mostly_too_slow and theirs is not None:
        return f"{found.target} gives no first token in time, {them} after {duration(theirs)}: it is us."
    times = found.ratios.get("ttft", found.ratios.get("ttfc"))
    if times is None:
        return f"{found.target} and {them} can't be compared: too few of their probes were answered."
    return f"{_first_token(found.target, them, times, thresholds)}{_pace(found.ratios.get('characters_per_second'))}."


def _first_token(us: str, them: str, times: float, thresholds: Thresholds) -> str:
    if times >= thresholds.hosted_ttft_times:
        return (
            f"{us} takes {_figure(times)} times as long as {them} to the first token: unless its GPUs are busy, the "
            "infrastructure is slow (queue, gateway, CPU, network), not the model"
        )
    if times > _ALIKE:
        return f"{us} is slower than {them}: {_figure(times)} times as long to the first token"
    if times < 1 / _ALIKE:
        return f"{us} is faster than {them}: {_figure(times)} of the time to the first token"
    return f"{us} and {them} are about equally fast to the first token"


def _pace(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if 1 / _ALIKE <= ratio <= _ALIKE:
        return "; their text comes at the same pace"
    return f"; its text comes at {_figure(ratio)} times the pace"


def _figure(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 1 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
