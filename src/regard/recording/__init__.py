"""Recording attention and looking at it."""

from regard.recording.record import record
from regard.recording.recording import RecordedMap, Recording

__all__ = ["RecordedMap", "Recording", "record"]
