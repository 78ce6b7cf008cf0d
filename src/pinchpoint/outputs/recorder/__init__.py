"""Ticks as a recording on disk, which ``pinchpoint diagnose --replay`` reads.

Is not: the reader (a source), nor a history of weeks: a recording is minutes to hours, at full resolution.
"""

from pinchpoint.outputs.recorder.recorder import Recorder

__all__ = ["Recorder"]
