"""Questions to a live model, in their order: one at a time, and only so many waiting.

The explorer knows no model. Whoever starts the server hands in objects of this small protocol (see regard.cli.serve).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from regard.core.errors import RegardError
from regard.recording import Recording

T = TypeVar("T")

MAX_TEXT = 20_000
MAX_EDITS = 64
WAITING = 8


class QuestionError(RegardError):
    """A question that cannot be asked; the answer is 400 with its sentence."""


class BusyError(RegardError):
    """Too many questions wait; the answer is 503."""


@dataclass(frozen=True)
class Question:
    """What is put to a model."""

    text: str | None = None
    picture: bytes | None = None
    name: str = ""
    """What the picture's file is called."""
    edits: tuple[dict[str, Any], ...] = ()
    """As `regard.edits.from_json` reads them; `freeze` has the question `like` whose attention is kept."""


class LiveModel(Protocol):
    """A model that answers."""

    name: str
    reads: Literal["text", "picture"]
    example: str
    """A text to begin with; empty for pictures."""

    def look(self, question: Question) -> Recording:
        """The answer, among the recording's outputs, with the attention behind it."""

    def python(self, question: Question) -> str:
        """Lines of Python that do the same."""


def read_question(value: Any, reads: str) -> Question:
    """A question from JSON, or a `QuestionError` that says what is wrong with it."""
    if not isinstance(value, Mapping):
        raise QuestionError("A question is an object with `text` or `picture`, and perhaps `edits`.")
    edits = value.get("edits", [])
    if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
        raise QuestionError("`edits` has to be a list of objects such as {address: ..., edit: mute, heads: [3]}.")
    if len(edits) > MAX_EDITS:
        raise QuestionError(f"There are {len(edits)} edits; at most {MAX_EDITS} are taken at once.")
    plain = _input(value, reads)
    return Question(plain.text, plain.picture, plain.name, tuple(_edit(edit, reads) for edit in edits))


def _input(value: Mapping[str, Any], reads: str) -> Question:
    if reads == "text":
        text = value.get("text")
        if not isinstance(text, str) or not text.strip():
            raise QuestionError("This model reads text: give `text`, a sentence.")
        if len(text) > MAX_TEXT:
            raise QuestionError(f"The text has {len(text):,} letters; at most {MAX_TEXT:,} are taken.")
        return Question(text=text)
    given = value.get("picture")
    if not isinstance(given, str) or not given:
        raise QuestionError("This model reads pictures: give `picture`, the file's bytes in base64.")
    try:
        picture = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raise QuestionError("`picture` is not base64.") from None
    name = value.get("name")
    return Question(picture=picture, name=name if isinstance(name, str) else "")


def _edit(edit: dict[str, Any], reads: str) -> dict[str, Any]:
    if not isinstance(edit.get("address"), str) or not isinstance(edit.get("edit"), str):
        raise QuestionError(f"An edit needs an `address` and an `edit`, and this one is {sorted(edit)}.")
    heads = edit.get("heads", [])
    if not isinstance(heads, list) or not all(isinstance(head, int) and not isinstance(head, bool) for head in heads):
        raise QuestionError("The `heads` of an edit are a list of numbers.")
    if edit["edit"] == "freeze":
        if not isinstance(edit.get("like"), Mapping):
            raise QuestionError("To freeze attention, say in `like` at which question it is taken.")
        return {**edit, "like": _input(edit["like"], reads)}
    return edit


class Queue:
    """One thread that works for all models, and a bounded number of questions that wait for it."""

    def __init__(self, waiting: int = WAITING) -> None:
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="regard-model")
        self._places = threading.BoundedSemaphore(waiting)
        self._waiting = waiting

    async def run(self, work: Callable[[], T]) -> T:
        """Does the work in its turn; a reader who goes away before that gives the turn back."""
        if not self._places.acquire(blocking=False):
            raise BusyError(f"The model is busy and {self._waiting} questions wait already. Ask again in a moment.")
        try:
            future: Future[T] = self._worker.submit(work)
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """What runs is finished, what waits is dropped."""
        self._worker.shutdown(wait=True, cancel_futures=True)
