"""OBSERVE: a recording on disk, as the snapshots that the daemon would have made of it.

Reads what ``pinchpoint run --record`` writes and what test cases are made of. Is not a recorder, and diagnoses nothing.
"""

from pinchpoint.sources.recording.failure import RecordingError
from pinchpoint.sources.recording.reader import Recording, read_recording

__all__ = ["Recording", "RecordingError", "read_recording"]
