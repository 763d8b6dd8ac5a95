"""Trained runs as models that the explorer can ask: an answer with its attention, with heads changed or not."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import UInt8

import regard
from regard.core.errors import ConfigError
from regard.data.embedded import DECK_PAIR
from regard.data.pictures.decode import decode
from regard.explorer.asking import LiveModel, Question, QuestionError
from regard.recipes.classifying import ClassificationRun
from regard.recipes.run import Run
from regard.recipes.translating import TranslationRun
from regard.recording import Recording

EDITS = ("mute", "keep", "uniform", "swap", "freeze")


def live_model(run: Run) -> LiveModel:
    """The run as something to ask; a task that cannot be asked is an error that names it."""
    run.needs_attention()
    if isinstance(run, TranslationRun):
        return LiveTranslator(run)
    if isinstance(run, ClassificationRun):
        return LiveClassifier(run)
    raise ConfigError(
        f"{run.folder.path} is a run of the task {run.config.task.kind!r}, which cannot be asked in the explorer; "
        "save a recording of it and serve that."
    )


class LiveTranslator:
    """Reads a sentence."""

    reads: Literal["text", "picture"] = "text"

    def __init__(self, run: TranslationRun) -> None:
        self.run = run
        self.name = f"{run.name} ({run.folder.path.name})"
        self.example = DECK_PAIR.source_text if run.config.data.source == "embedded" else ""

    def look(self, question: Question) -> Recording:
        with edited(self.run, question, self._recorded):
            return self._recorded(question)

    def _recorded(self, question: Question) -> Recording:
        assert question.text is not None
        return self.run.look(question.text).recording

    def python(self, question: Question) -> str:
        return lines(self.run, question, "print(look.translation.text)", lambda one: repr(one.text))


class LiveClassifier:
    """Reads a picture."""

    reads: Literal["text", "picture"] = "picture"
    example = ""

    def __init__(self, run: ClassificationRun) -> None:
        self.run = run
        self.name = f"{run.name} ({run.folder.path.name})"

    def look(self, question: Question) -> Recording:
        with edited(self.run, question, self._recorded):
            return self._recorded(question)

    def _recorded(self, question: Question) -> Recording:
        return self.run.look(_picture(question)).recording

    def python(self, question: Question) -> str:
        shown = "print(look.prediction.names[0], look.prediction.probabilities[0])"
        return lines(self.run, question, shown, lambda one: repr(one.name or "picture.png"))


def edited(run: Run, question: Question, recorded: Any) -> AbstractContextManager[Any]:
    """The model with the question's edits; what is frozen is recorded first, of the model as it is."""
    if not question.edits:
        return nullcontext()
    made: dict[str, list[Any]] = {}
    looks: dict[Question, Recording] = {}
    for edit in question.edits:
        name, address, heads = _checked(edit)
        given: tuple[Any, ...] = tuple(heads)
        if name == "freeze":
            like = edit["like"]
            if like not in looks:
                looks[like] = recorded(like)
            given = (looks[like][address], *heads)
        made.setdefault(address, []).append(getattr(regard.edits, name)(*given))
    return regard.edit(run.model, made)


def lines(run: Run, question: Question, shown: str, argument: Any) -> str:
    """Python that asks the same: what stands in the explorer can be gone on with in a notebook."""
    text = ["import regard", "", f"run = regard.open_run({str(Path(run.folder.path).resolve())!r})"]
    asked = f"look = run.look({argument(question)})"
    if not question.edits:
        return "\n".join([*text, asked, shown, ""])
    made: dict[str, list[str]] = {}
    for edit in question.edits:
        name, address, heads = _checked(edit)
        given = [str(head) for head in heads]
        if name == "freeze":
            given = [f"run.look({argument(edit['like'])}).recording[{address!r}]", *given]
        made.setdefault(address, []).append(f"regard.edits.{name}({', '.join(given)})")
    text.append("edits = {")
    text += [f"    {address!r}: [{', '.join(calls)}]," for address, calls in made.items()]
    text += ["}", "with regard.edit(run.model, edits):", f"    {asked}", shown, ""]
    return "\n".join(text)


def _checked(edit: dict[str, Any]) -> tuple[str, str, list[int]]:
    name, heads = edit["edit"], edit.get("heads", [])
    if name not in EDITS:
        raise QuestionError(f"There is no edit {name[:40]!r}; there are {', '.join(EDITS)}.")
    if name == "swap" and len(heads) != 2:
        raise QuestionError(f"A swap is between two heads, and {len(heads)} are given.")
    return name, edit["address"], heads


def _picture(question: Question) -> UInt8[np.ndarray, "_ _ 3"]:
    assert question.picture is not None
    return decode(question.picture, name=question.name or "the picture")
