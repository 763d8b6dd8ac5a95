"""One Chromium for all tests, a server in a thread, and recordings of every form with random numbers."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import uvicorn

from regard.core.axes import Axis, Grid, Text
from regard.core.relations import DenseRelation, DotRelation, Relation
from regard.explorer.asking import LiveModel, Question
from regard.explorer.server import Served, make_app
from regard.recording import Recording

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

SOURCE = ("the", "black", "dog", "of", "Anna", "</s>")
TARGET = ("le", "chien", "noir", "d'Anna", "</s>")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, started once; without one these tests are skipped and say so."""
    found = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium here: install the package `chromium`, or name one in REGARD_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


OpenPage = Callable[..., Any]


@pytest.fixture
def open_page(chromium: Any) -> Iterator[OpenPage]:
    """A page of its own for a test; an error in its script fails the test."""
    contexts, errors = [], []

    def open_page(url: str, **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def until(page: Any, condition: str, seconds: float = 20) -> None:
    """Waits for a condition in the page; the page's own policy forbids playwright's way of waiting."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(30)


class Site:
    """A running server."""

    def __init__(self, recordings: Sequence[Served] = (), models: Sequence[LiveModel] = ()) -> None:
        opened = socket.socket()
        opened.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{opened.getsockname()[1]}/"
        config = uvicorn.Config(make_app(recordings, models), log_level="error", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [opened]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


OpenSite = Callable[..., str]


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    """Serves recordings by name, and models; gives the address."""
    sites: list[Site] = []

    def open_site(recordings: dict[str, Recording], models: Sequence[LiveModel] = ()) -> str:
        served = []
        for number, (name, recording) in enumerate(recordings.items()):
            step = recording.outputs.get("step")
            served.append(Served(recording.save(tmp_path / f"{number}.regard"), name, step))
        sites.append(Site(served, models))
        return sites[-1].url

    yield open_site
    for site in sites:
        site.close()


def labelled(relations: dict[str, Relation], roles: dict[str, tuple[str, str]], **axes: list[Axis]) -> Recording:
    return Recording(dict(relations), dict(roles)).label(**axes)


def translation(layers: int = 2, heads: int = 3, seed: int = 7, sharpness: float = 2.0) -> Recording:
    """An encoder's self-attention and a decoder's cross attention for one pair of sentences."""
    generator = torch.Generator().manual_seed(seed)
    recording = Recording()
    for layer in range(layers):
        queries, keys = sharpness * torch.randn(2, 1, heads, len(SOURCE), 5, generator=generator)
        recording.relations[f"encoder.{layer}.self"] = DotRelation(queries, keys, 0.5)
        recording.roles[f"encoder.{layer}.self"] = ("source", "source")
        scores = sharpness * torch.randn(1, heads, len(TARGET), len(SOURCE), generator=generator)
        recording.relations[f"decoder.{layer}.cross"] = DenseRelation(scores.softmax(dim=-1))
        recording.roles[f"decoder.{layer}.cross"] = ("target", "source")
    recording.outputs.update(source="the black dog of Anna", translation="le chien noir d'Anna", score=-0.25)
    return recording.label(source=[Text(SOURCE)], target=[Text(TARGET)])


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def picture(rows: int = 3, columns: int = 5, extras: tuple[str, ...] = ("class",)) -> Recording:
    """Self-attention over the patches of a wide picture."""
    generator = torch.Generator().manual_seed(11)
    axis = Grid(rows, columns, 8 * rows, 8 * columns, extras)
    queries, keys = 2 * torch.randn(2, 1, 2, len(axis), 7, generator=generator)
    recording = Recording({"encoder.0.attention": DotRelation(queries, keys, 0.4)})
    recording.roles["encoder.0.attention"] = ("patches", "patches")
    recording.outputs["pictures"] = [PIXEL]
    recording.outputs["predictions"] = [{"class": "cat", "probability": 0.75, "classes": []}]
    return recording.label(patches=[axis])


class FakeModel:
    """A translator whose answer says what it was asked; muting changes it."""

    name = "parrot"
    reads = "text"
    example = "the black dog"

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def look(self, question: Question) -> Recording:
        self.asked.append(question)
        recording = translation(sharpness=1.0 if question.edits else 2.0)
        changed = " ".join(edit["edit"] for edit in question.edits)
        recording.outputs.update(source=question.text, translation=f"{question.text} {changed}".strip().upper())
        return recording

    def python(self, question: Question) -> str:
        return f"ask({question.text!r}, {list(question.edits)!r})"
