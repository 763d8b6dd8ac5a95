"""The page: complete in itself, safe whatever the tokens are, and truthful about the weights."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, RecordingError
from regard.core.relations import DenseRelation
from regard.plots import write_page
from regard.recording import Recording

from .conftest import WEIRD

SOURCE, TARGET = ("the", "black", "dog", "</s>"), ("le", "chien", "noir", "</s>")
VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """The page as a browser reads it: what stands in each element, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    @property
    def data(self):
        return json.loads(next(text for text in self.texts["script"] if text.startswith('{"palettes"')))

    @property
    def prose(self):
        return " ".join(text for tag, texts in self.texts.items() if tag not in ("script", "style") for text in texts)


@pytest.fixture
def write(tmp_path):
    def write(recordings, **options) -> Page:
        return Page(write_page(tmp_path / "page.html", recordings, **options).read_text(encoding="utf-8"))

    return write


def weights_of(entry):
    return np.array(entry["weights"]).reshape(entry["shape"]) / 1000


def test_weights_and_words_are_those_of_the_recording(make_recording, write):
    recording = make_recording([SOURCE], [TARGET[:3]], layers=2)
    (sentence,) = write(recording).data["sentences"]
    assert [entry["address"] for entry in sentence["maps"]] == recording.addresses
    for entry in sentence["maps"]:
        expected = recording[entry["address"]].weights(example=0).numpy()
        assert np.abs(weights_of(entry) - expected).max() <= 0.0005 + 1e-6
        rows, columns = (sentence["axes"][entry[role]] for role in ("queries", "keys"))
        assert [len(rows), len(columns)] == entry["shape"][1:]
    assert [label for label, _ in sentence["axes"]["target"]] == list(TARGET[:3])


def test_the_page_asks_the_network_for_nothing(make_recording, write, tmp_path):
    page = write(make_recording([SOURCE], [TARGET]))
    for tag, attributes in page.seen:
        assert not {"src", "href", "action", "data"} & attributes.keys(), tag
    policy = next(a["content"] for tag, a in page.seen if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert set(re.findall(r"\bhttps?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not re.search(r"\burl\(|@import|\bfetch\(|\bimport\b", text)


def test_it_can_be_read_without_eyes_and_without_the_script(make_recording, write):
    recording = make_recording([SOURCE], [TARGET])
    recording.outputs.update(
        source="the black dog",
        translation="le chien noir",
        score=-1.25,
        log_probability=-5.0,
        finished=True,
        alignment="0-0 2-1 1-2",
        alternatives=[{"translation": "le chien", "score": -2.5}, "un chien"],
    )
    page = write(recording, title="Dogs", introduction="About dogs.")
    assert page.seen[0][0] == "html"
    assert page.seen[0][1]["lang"] == "en"
    for expected in (
        "Dogs",
        "About dogs.",
        "the black dog",
        "le chien noir",
        "-1.250",
        "0-0 2-1 1-2",
        "le chien",
        "-2.500",
    ):
        assert expected in page.prose
    assert "un chien" in page.prose
    headings = [attributes["id"] for tag, attributes in page.seen if tag == "h2"]
    assert [attributes["aria-labelledby"] for tag, attributes in page.seen if tag == "section"] == headings
    assert "noscript" in dict(page.seen)


def test_tokens_cannot_break_out(make_recording, write):
    recording = make_recording([WEIRD], [WEIRD])
    evil = "</script><script>alert(1)</script><b>&amp;"
    recording.outputs.update(source=evil, translation=evil, alternatives=[evil])
    page = write([(evil, recording)], title=evil, introduction=evil)
    assert sum(tag == "script" for tag, _ in page.seen) == 2
    assert not any(tag == "b" for tag, _ in page.seen)
    assert page.prose.count(evil) == 7  # title (twice), introduction, heading, source, translation, alternative
    tokens = [token for _, token in page.data["sentences"][0]["axes"]["source"]]
    assert tokens == [token.encode("utf-8", "replace").decode() for token in WEIRD]


def test_several_examples_of_several_recordings(make_recording, write):
    pair = make_recording([SOURCE, SOURCE[:2]], [TARGET, TARGET[:1]])
    pair.outputs["examples"] = [{"source": "first"}, {"source": "second"}]
    page = write([("Two", pair), ("One", make_recording([SOURCE], [()]))], taps="*cross*")
    assert [entry["maps"][0]["shape"] for entry in page.data["sentences"]] == [[3, 4, 4], [3, 1, 2], [3, 0, 4]]
    assert page.texts["h2"] == ["Two 1", "Two 2", "One"]
    assert {"first", "second"} <= set(page.texts["span"])
    alone = write(pair)
    assert alone.texts["h2"] == ["first", "second"]


def test_outputs_that_do_not_fit_the_examples(make_recording, write):
    recording = make_recording([SOURCE], [TARGET])
    recording.outputs["examples"] = [{}, {}]
    with pytest.raises(ConfigError, match=r"1 examples.*describe 2"):
        write(recording)


def test_links_are_shown_where_tokens_are_words(make_recording, write):
    def links(source, target, **outputs):
        recording = make_recording([source], [target])
        recording.outputs.update(source="the black dog", translation="le chien noir", **outputs)
        maps = write(recording).data["sentences"][0]["maps"]
        return {entry["address"]: entry["links"] for entry in maps}

    found = links(SOURCE, TARGET, alignment="0-0 2-1")
    assert found == {"encoder.0.self": [], "decoder.0.cross": [[0, 0], [2, 1]]}
    assert links(SOURCE, TARGET[:3], alignment="0-0")["decoder.0.cross"] == [[0, 0]]
    assert links(("th", "e", "black", "dog", "</s>"), TARGET, alignment="0-0")["decoder.0.cross"] == []
    assert links(SOURCE, TARGET, alignment="")["decoder.0.cross"] == []
    for wrong in ("0", "0-3", "x-y"):
        with pytest.raises(RecordingError, match=f"at '{wrong}'"):
            links(SOURCE, TARGET, alignment=wrong)


def test_the_first_map_is_the_one_asked_for(make_recording, write):
    recording = make_recording([SOURCE], [TARGET], layers=3)

    def first(**options):
        sentence = write(recording, **options).data["sentences"][0]
        return sentence["maps"][sentence["first"]]["address"]

    assert first() == "decoder.1.cross"  # the last but one that reads the other sentence
    assert first(taps="*self") == "encoder.0.self"
    assert first(address="encoder.2.self") == "encoder.2.self"
    with pytest.raises(ConfigError, match=r"'decoder.9.cross'.*decoder.0.cross"):
        first(address="decoder.9.cross")


def test_maps_of_other_lengths_without_axes(write):
    recording = Recording()
    for name, keys in (("short", 3), ("long", 5)):
        recording.relations[name] = DenseRelation(torch.full((1, 2, 3, keys), 1 / keys))
        recording.roles[name] = ("target", "memory")
    sentence = write(recording).data["sentences"][0]
    assert len(sentence["axes"]["memory"]) == 5


@pytest.mark.parametrize(("shape", "limit"), [((1, 1, 1, 401), "400 a side"), ((2, 30, 399, 399), "6,000,000")])
def test_too_large_recordings_are_refused_before_anything_is_computed(tmp_path, shape, limit):
    recording = Recording()
    recording.relations["attention"] = DenseRelation(torch.zeros(1).expand(shape))
    recording.roles["attention"] = ("target", "source")
    with pytest.raises(ConfigError, match=limit):
        write_page(tmp_path / "page.html", recording)
    assert not list(tmp_path.iterdir())


def test_nothing_to_show(tmp_path, make_recording):
    with pytest.raises(ConfigError, match="no recording"):
        write_page(tmp_path / "page.html", [])
    with pytest.raises(ConfigError, match="No recorded tap matches 'nowhere'"):
        write_page(tmp_path / "page.html", make_recording([SOURCE], [TARGET]), taps="nowhere")


def test_the_page_is_the_same_every_time(make_recording, tmp_path):
    pages = [write_page(tmp_path / name, make_recording([SOURCE], [TARGET])) for name in ("a.html", "b.html")]
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_is_well_formed(tmp_path):
    script = tmp_path / "page.mjs"
    script.write_text(resources.files("regard.plots").joinpath("page.js").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([shutil.which("node"), "--check", str(script)], check=True)
