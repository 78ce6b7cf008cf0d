"""no_data: the engine can't be seen.

Claims: there is no fresh scrape, so nothing is known of the engine. Decides: absence from the newest tick, or a scrape
older than ``stale_seconds``. Nothing supports or contradicts it. Fallback: none needed. Advice: mend the scrape.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.snapshot import Reason


def no_data(signals: Signals, thresholds: Thresholds) -> Judgement:
    if signals.absence is not None and signals.absence.reason is Reason.STARTING:  # unknown, until it has been tried
        return Judgement(bottleneck=Bottleneck.NO_DATA, score=None)
    if signals.load.scrapes:
        return Judgement(bottleneck=Bottleneck.NO_DATA, score=0.0)
    age = signals.age_seconds
    if signals.absence is not None:
        why = f"the engine can't be read ({signals.absence.reason}): {signals.absence.detail}"
    elif age is not None:
        why = "the last scrape is too old to say anything of now"
    else:
        why = "the engine has not been scraped yet"
    return Judgement(
        bottleneck=Bottleneck.NO_DATA,
        score=1.0,
        why=why,
        evidence=lambda: gathered(
            fact("age_seconds", age, "it was last read {value} ago", duration, thresholds.stale_seconds)
        ),
        missing=("engine_scrape",),
        gate=True,
    )
