"""network: client to engine. The engine serves in time, and clients get it late.

Claims: a gateway, a proxy or the network between clients and engine is why they wait.
Decides: local probes, which go the clients' way: their TTFT less what the engine observed at the same moments is above
50 ms and a fifth, and with that much added to the engine's own TTFTs more requests miss the objective than an objective
allows, most of which the engine served in time. Or answers come whole, at their end (a proxy that buffers). Or tokens
come later than the engine makes them. Or probes get no answer while the engine serves, or rests.
Supports: a slow name, connection or TLS, which come before TTFT begins.
Contradicted by: an engine that is late itself (then it is the engine); a host that is short of CPU, for the server's
HTTP side lies on this way too; hosted APIs that are as slow, for then it is our side of the network.
Fallback: without local probes the clients' side is unseen and it abstains. Advice: probe past the gateway, unbuffer.
"""

from pinchpoint.diagnosis.clients import harm_of
from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered, percent
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence

_AS_SLOW = 0.8  # of our own TTFT: a hosted API that needs as long goes the same way
_DOUBT = 0.5  # what is left of the claim with each thing that may explain the way as well
_PRESSURE_RATIO = 0.2


def network(signals: Signals, thresholds: Thresholds) -> Judgement:
    harm = harm_of(signals, thresholds)
    if harm.degree is None:
        return Judgement(bottleneck=Bottleneck.NETWORK, score=None, missing=("own_probes",))
    if not harm.degree:
        return Judgement(bottleneck=Bottleneck.NETWORK, score=0.0)
    against = _against(signals, thresholds)
    score = harm.degree * _DOUBT ** len(against)
    return Judgement(
        bottleneck=Bottleneck.NETWORK,
        score=score,
        why=harm.why,
        evidence=lambda: harm.evidence,
        contradicted_by=against,
    )


def _against(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    host, told = signals.host, signals.compared
    throttled, pressure = host.host_cpu_throttled_ratio or 0.0, host.host_cpu_pressure_ratio or 0.0
    short = host.host_cpu_throttled_ratio if throttled > thresholds.cpu_throttled_begins else None
    waits = host.host_cpu_pressure_ratio if short is None and pressure > _PRESSURE_RATIO else None
    ours = told.probe_local_ttft_seconds if told else None
    theirs = told.probe_hosted_ttft_seconds if told else None
    slow = ours is not None and theirs is not None and theirs > max(_AS_SLOW * ours, signals.slo.ttft_seconds)
    return gathered(
        fact("host_cpu_throttled_ratio", short, "the host's CPU quota is used up in {value} of its periods", percent),
        fact("host_cpu_pressure_ratio", waits, "tasks wait for a CPU {value} of the time", percent),
        fact("probe_hosted_ttft_seconds", theirs if slow else None, "the hosted API needs {value} too", duration),
    )
