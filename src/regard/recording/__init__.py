"""Recording attention, looking at it and changing it."""

from regard.recording import edits
from regard.recording.edit import edit
from regard.recording.film import film
from regard.recording.importance import Importance, importance
from regard.recording.record import record
from regard.recording.recording import RecordedMap, Recording
from regard.recording.rehearsal import recording_cost
from regard.recording.relevance import Relevance, relevance
from regard.recording.rollout import Composed

__all__ = [
    "Composed",
    "Importance",
    "RecordedMap",
    "Recording",
    "Relevance",
    "edit",
    "edits",
    "film",
    "importance",
    "record",
    "recording_cost",
    "relevance",
]
