"""Recording attention, looking at it and changing it."""

from regard.recording import edits
from regard.recording.edit import edit
from regard.recording.importance import Importance, importance
from regard.recording.record import record
from regard.recording.recording import RecordedMap, Recording

__all__ = ["Importance", "RecordedMap", "Recording", "edit", "edits", "importance", "record"]
