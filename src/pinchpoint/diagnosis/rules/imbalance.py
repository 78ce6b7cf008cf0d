"""imbalance: data-parallel replicas. One has too much to do while another has room.

Claims: the balancer, not the replicas' number or size, is why requests are late.
Decides: in most scrapes one replica has a queue that lasts, or misses an objective, while another has neither, runs
less than half of what the busy one runs (or of max_num_seqs) and has KV cache to spare; and an even spread would ask
each for less than what the busy one bears (arrivals against served where the queue grows, else how many are there).
Supports: the busy one makes more tokens than the others: it is asked for more.
Contradicted by: all are busy (then capacity is short); the busy one makes fewer tokens than the others (then it is slow
itself: a sick card, another host); a fault throttle on its cards.
Fallback: it abstains with one replica, or where replicas do not count their requests. Advice: balance by load.
Thresholds: half of the maximum as in vllm-doctor's factor of 2; it takes at least a third of the scrapes.
"""

from pinchpoint.diagnosis.judgement import Judgement, fact, gathered, percent, ramp
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def imbalance(signals: Signals, thresholds: Thresholds) -> Judgement:
    spread = signals.spread
    if spread.replicas is None:
        return Judgement(bottleneck=Bottleneck.IMBALANCE, score=None)
    if spread.spread_share is None and spread.replicas_overloaded is None:
        return Judgement(bottleneck=Bottleneck.IMBALANCE, score=None, missing=("requests_running", "requests_waiting"))
    uneven = ramp(spread.spread_share, thresholds.spread_share_begins, thresholds.spread_share_certain)
    if not uneven or signals.load.moved is False:
        return Judgement(bottleneck=Bottleneck.IMBALANCE, score=0.0)
    fits = 1.0 - ramp(spread.spread_demand_ratio, thresholds.spread_demand_certain, thresholds.spread_demand_ends)
    slow = 0.0
    if spread.spread_work_ratio is not None:
        slow = 1.0 - ramp(spread.spread_work_ratio, thresholds.spread_work_begins, thresholds.spread_work_certain)
    throttled = _throttle(signals, thresholds)
    helps = fits + (1.0 - fits) * _helps_some(signals)
    score = 0.95 * uneven * helps * (1.0 - slow) * (0.5 if throttled else 1.0)
    return Judgement(
        bottleneck=Bottleneck.IMBALANCE,
        score=score,
        why="one replica has more than it can serve in time while another has room",
        evidence=lambda: _evidence(signals, thresholds, fits) + strain_of(signals, thresholds).evidence,
        contradicted_by=gathered(*_against(signals, thresholds, fits=fits, slow=slow), throttled),
        # It is why that one's slots or cache are full: evenness alone would serve everybody.
        gate=score >= thresholds.name_score and fits >= 0.5,
    )


def _helps_some(signals: Signals) -> float:
    """How far evenness relieves an overload that it does not end (0..1): what of the replicas does next to nothing, as
    one of eight does for the other seven, or half of them for the other half."""
    spread = signals.spread
    room = ratio(spread.replicas_with_room, spread.replicas) or 0.0
    return ramp(room, 0.2, 0.4) * (0.6 + 0.3 * ramp(spread.spread_work_ratio, 2.0, 5.0))


def _throttle(signals: Signals, thresholds: Thresholds) -> Evidence | None:
    share = signals.devices.gpu_fault_throttle_share
    if share is None or share <= thresholds.throttle_share_begins:
        return None
    text = "a card is slowed down in {value} of the readings"
    return fact("gpu_fault_throttle_share", share, text, percent, thresholds.throttle_share_begins)


def _against(signals: Signals, thresholds: Thresholds, *, fits: float, slow: float) -> tuple[Evidence | None, ...]:
    spread = signals.spread
    demand = spread.spread_demand_ratio if fits < 1 else None
    work = spread.spread_work_ratio if slow > 0 else None
    return (
        fact(
            "spread_demand_ratio",
            demand,
            "spread evenly, each would get {value} of what the busy one bears",
            percent,
            thresholds.spread_demand_certain,
        ),
        fact(
            "spread_work_ratio",
            work,
            f"replica {spread.overloaded} makes {{value}} of the tokens of those with room: it may be slow itself",
            percent,
            thresholds.spread_work_certain,
        ),
    )


def _evidence(signals: Signals, thresholds: Thresholds, fits: float) -> tuple[Evidence, ...]:
    spread = signals.spread
    text = (
        f"in {{value}} of the scrapes replica {spread.overloaded} was overloaded while replica {spread.freest} had room"
    )
    return gathered(
        fact("spread_share", spread.spread_share, text, percent, thresholds.spread_share_certain),
        fact(
            "spread_demand_ratio",
            spread.spread_demand_ratio if fits >= 1 else None,  # else it speaks against
            "spread evenly, each would get {value} of what the busy one bears",
            percent,
            thresholds.spread_demand_certain,
        ),
        fact(
            "running_spread_ratio",
            spread.running_spread_ratio,
            "the busiest runs {value} times the mean",
            lambda times: f"{times:.1f}",
        ),
        fact(
            "kv_cache_usage_spread_ratio",
            spread.kv_cache_usage_spread_ratio,
            "the fullest KV cache is {value} of its size above the emptiest",
            percent,
        ),
    )
