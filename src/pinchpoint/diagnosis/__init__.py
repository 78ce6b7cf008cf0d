"""DECIDE, pure: from a window of readings to one class per engine, with evidence, rival, gaps and advice.

``diagnose`` names the class of the moment, ``settle`` the class that is shown (hysteresis), ``judge_recording`` that of
a whole recording. Time comes as an argument; the same window gives the same answer.

Is not: a source (no I/O, no clock, no chance), a judge of capacity or alerts (one floor up).
"""

from pinchpoint.diagnosis.course import Course, Interval, lengthened, recent
from pinchpoint.diagnosis.decide import diagnose
from pinchpoint.diagnosis.hysteresis import begin, settle, tally, watched
from pinchpoint.diagnosis.memory import Memory
from pinchpoint.diagnosis.signals import Signals, signals_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.timeline import RecordingVerdict, judge_recording
from pinchpoint.diagnosis.verdict import CODES, Advice, Bottleneck, Diagnosis, Evidence, Settled, Shown

__all__ = [
    "CODES",
    "Advice",
    "Bottleneck",
    "Course",
    "Diagnosis",
    "Evidence",
    "Interval",
    "Memory",
    "RecordingVerdict",
    "Settled",
    "Shown",
    "Signals",
    "Thresholds",
    "begin",
    "diagnose",
    "judge_recording",
    "lengthened",
    "recent",
    "settle",
    "signals_of",
    "tally",
    "watched",
]
