"""no_data: the engine can't be seen.

Claims: there is no fresh scrape, so nothing is known of the engine. Decides: absence from the newest tick, or a scrape
older than ``stale_seconds``. Nothing supports or contradicts it. Fallback: none needed. Advice: mend the scrape.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Evidence


def no_data(signals: Signals, thresholds: Thresholds) -> Judgement:
    if signals.load.scrapes:
        return Judgement(bottleneck=Bottleneck.NO_DATA, score=0.0)
    age = signals.age_seconds
    if signals.absence is not None:
        why = f"the engine can't be read ({signals.absence.reason}): {signals.absence.detail}"
    elif age is not None:
        why = f"the last scrape is {duration(age)} old"
    else:
        why = "the engine has not been scraped yet"
    return Judgement(
        bottleneck=Bottleneck.NO_DATA,
        score=1.0,
        why=why,
        evidence=(Evidence(signal="age_seconds", text=why, value=age, threshold=thresholds.stale_seconds),),
        missing=("engine_scrape",),
        advice=(Advice(action="restore_scrape", text="Make the engine's /metrics answer again; the reason is above."),),
        gate=True,
    )
