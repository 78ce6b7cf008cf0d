"""Do clients suffer on the way, while the engine serves in time? By our own probes, which go the way of the clients."""

from dataclasses import dataclass

from pinchpoint.diagnosis.judgement import count, duration, fact, gathered, percent, ramp
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Evidence
from pinchpoint.diagnosis.way import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """How much clients suffer from the way alone (0..1), why, and the facts; ``None``: no probe of ours tells."""

    degree: float | None
    why: str = ""
    evidence: tuple[Evidence, ...] = ()


def is_seen(signals: Signals) -> bool:
    """Whether enough probes came back to know how clients fare."""
    return signals.way is not None and signals.way.probe_client_ttft_seconds is not None


def harm_of(signals: Signals, thresholds: Thresholds) -> Harm:
    """The worst of: answers that come whole, late first tokens, probes without an answer, late or bursting tokens."""
    way = signals.way
    if way is None or way.probe_late_share is None:
        return Harm(degree=None)
    rules = (_whole, _slow_stream, _late, _unanswered)
    found = [rule(way, signals, thresholds) for rule in rules]
    worst = max(found, key=lambda harm: harm.degree or 0.0)
    return worst if is_seen(signals) or worst.degree else Harm(degree=None)


def gets_no_answer(signals: Signals) -> bool:
    """Whether most of our last probes got no answer, while the engine was not the one that held them up."""
    way = signals.way
    if way is None:
        return False
    return (way.probe_late_share or 0.0) + (way.probe_stuck_share or 0.0) + (way.probe_lost_share or 0.0) > 0.5


def gets_stuck(signals: Signals) -> bool:
    """Whether most of our last probes reached a server and no token was made, for them or anybody."""
    return signals.way is not None and (signals.way.probe_stuck_share or 0.0) > 0.5


def is_significant(way: Way, thresholds: Thresholds) -> bool:
    """Whether the way is longer than what the HTTP side of the server may take itself."""
    gap, client = way.network_ttft_seconds, way.probe_client_ttft_seconds
    return gap is not None and client is not None and gap > max(thresholds.way_seconds, thresholds.way_share * client)


def _missed(way: Way, thresholds: Thresholds) -> float:
    """Requests late at the client, as far as they would be in time without the way."""
    missed, network = way.client_ttft_missed_share, way.network_ttft_missed_share
    if not missed or network is None:
        return 0.0
    mends = ramp(network / missed, thresholds.way_mends_begins, thresholds.way_mends_certain)
    return mends * ramp(missed, thresholds.client_missed_begins, thresholds.client_missed_certain)


def _whole(way: Way, signals: Signals, thresholds: Thresholds) -> Harm:
    if (way.probe_buffered_share or 0.0) <= 0.5:
        return Harm(degree=0.0)
    unknown = way.client_ttft_missed_share is None
    return Harm(
        degree=0.6 if unknown else 0.95 * _missed(way, thresholds),
        why="answers reach the client whole instead of token by token: something on the way holds the stream back",
        evidence=gathered(
            fact(
                "probe_buffered_share",
                way.probe_buffered_share,
                "{value} of our last probes got their tokens at once, at the end",
                percent,
                0.5,
            ),
            *_clocks(way, signals, thresholds),
        ),
    )


def _late(way: Way, signals: Signals, thresholds: Thresholds) -> Harm:
    if not is_significant(way, thresholds):
        return Harm(degree=0.0)
    return Harm(
        degree=0.95 * _missed(way, thresholds),
        why="first tokens leave the engine in time and reach the client late: they are held up on the way",
        evidence=_clocks(way, signals, thresholds),
    )


def _unanswered(way: Way, signals: Signals, thresholds: Thresholds) -> Harm:
    """While the engine served what reached it. Probes that reach no server say nothing where others are served: then
    it is their own way, or a wrong address."""
    late, lost = way.probe_late_share or 0.0, way.probe_lost_share or 0.0
    stuck = way.probe_stuck_share or 0.0
    if not gets_no_answer(signals) or strain_of(signals, thresholds).any:
        return Harm(degree=0.0)
    others = signals.load.busy or bool(signals.load.requests_started_per_second)
    text = f"{{value}} of our last {count(way.way_probes)} probes got no answer ({way.probe_failure})"
    return Harm(
        # Probes that end within an engine that makes no token are its own, unless the way swallows them.
        degree=0.35 if stuck > late + lost else 0.7 if late > lost else 0.3 if others else 0.6,
        why="our probes get no answer, and the engine is not the one that holds them up",
        evidence=gathered(fact("probe_late_share", late + stuck + lost, text, percent, 0.5)),
    )


def _slow_stream(way: Way, signals: Signals, thresholds: Thresholds) -> Harm:
    """Tokens that leave the engine in time and reach the client later; or in a burst, after a late first one."""
    client, own = way.probe_client_tpot_seconds, way.probe_engine_inter_token_seconds
    if client is None or not own:
        return Harm(degree=0.0)
    slo = signals.slo.tpot_seconds
    text = f"{{value}} a token at the client, {duration(own)} at the engine, objective {{threshold}}"
    evidence = gathered(fact("probe_client_tpot_seconds", client, text, duration, slo))
    if client > slo >= own and client > thresholds.client_pace_times * own:
        why = "tokens leave the engine in time and reach the client late: they are held up on the way"
        return Harm(degree=0.6, why=why, evidence=evidence)
    if client < thresholds.client_burst_ratio * own and not way.speculates and is_significant(way, thresholds):
        why = "tokens reach the client in a burst after a late first one: something on the way holds the stream back"
        facts = (*evidence, *_clocks(way, signals, thresholds))
        return Harm(degree=0.95 * _missed(way, thresholds), why=why, evidence=facts)
    return Harm(degree=0.0)


def _clocks(way: Way, signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    own = way.probe_engine_ttft_seconds
    at_engine = f", of which the engine accounts for {duration(own)}" if own is not None else ""
    ttft = f"our probes wait {{value}} for their first token{at_engine}"
    slo = signals.slo.ttft_seconds
    missed = f"{{value}} of all requests miss the first-token objective of {duration(slo)} at the client"
    if way.network_ttft_missed_share is not None:
        missed += f", {percent(way.network_ttft_missed_share)} through the way alone"
    connect = way.probe_connect_seconds
    slow = connect if connect is not None and connect > thresholds.way_seconds else None
    return gathered(
        fact("probe_client_ttft_seconds", way.probe_client_ttft_seconds, ttft, duration, slo),
        fact(
            "client_ttft_missed_share",
            way.client_ttft_missed_share,
            missed,
            percent,
            thresholds.client_missed_begins,
        ),
        fact("probe_connect_seconds", slow, "and {value} before that for name, connection and TLS", duration),
    )
