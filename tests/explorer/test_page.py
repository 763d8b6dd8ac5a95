"""The page: complete in itself, safe whatever the tokens are, small, and truthful about its weights."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from regard.core.axes import Text
from regard.core.errors import ConfigError
from regard.core.relations import DenseRelation, DotRelation
from regard.explorer import packing, write_page
from regard.explorer.packing import file_bytes
from regard.explorer.rounding import restored, rounded
from regard.recording import Recording

from .conftest import labelled, picture, translation, until
from .test_views import WEIRD, clean


def test_it_opens_by_a_double_click_without_a_network(tmp_path, open_page):
    path = write_page(tmp_path / "page.html", [("one", translation()), ("two", picture())], title="Dogs & cats")
    page = open_page(path.as_uri(), offline=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    page.locator(".list.queries .word").first.wait_for()
    page.locator(".list.queries .word", has_text="noir").click()
    until(page, "location.hash.includes('query=2')")
    assert page.title() == "Dogs & cats"
    page.get_by_label("Recording", exact=True).select_option("1")
    page.get_by_role("tab", name="Picture").click()
    page.locator(".board").wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_nothing_in_it_can_be_fetched(tmp_path):
    text = write_page(tmp_path / "page.html", translation()).read_text(encoding="utf-8")
    assert set(re.findall(r"\bhttps?://[^\"'\s]+", text)) <= {"http://www.w3.org/2000/svg"}  # a name, never fetched
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(src|href|action)=|url\(|@import", markup)
    assert "default-src 'none'" in markup


@pytest.mark.parametrize("place", ["tokens", "texts"])
def test_tokens_cannot_break_out(tmp_path, open_page, place):
    evil = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'><!--"
    tokens = (*WEIRD, evil, "\ud83d") if place == "tokens" else ("a", "b")
    relation = DenseRelation(torch.rand(1, 2, len(tokens), len(tokens)).softmax(dim=-1))
    recording = labelled({"a": relation}, {"a": ("q", "q")}, q=[Text(tuple(t for t in tokens if t != "\ud83d"))][:1]) \
        if place == "texts" else _with(tokens[:-1], relation)  # fmt: skip
    recording.outputs.update(source=evil, translation=evil, alternatives=[evil])
    path = write_page(tmp_path / "page.html", [(evil, recording)], title=evil, introduction=evil)
    page = open_page(path.as_uri())
    page.locator(".list.queries .word").first.wait_for()
    for view in ("Matrix", "Heads", "Layers", "Rollout"):
        page.get_by_role("tab", name=view).click()
        page.wait_for_timeout(50)
    assert page.evaluate("window.broken") is None
    assert page.locator("h1").text_content() == evil
    assert page.locator(".facts dd").first.text_content() == evil


def _with(tokens: tuple[str, ...], relation: DenseRelation) -> Recording:
    smaller = DenseRelation(relation.dense[:, :, : len(tokens), : len(tokens)].contiguous())
    return labelled({"a": smaller}, {"a": ("q", "q")}, q=[Text(tokens)])


def test_texts_can_be_read_without_the_script(tmp_path, open_page):
    path = write_page(tmp_path / "page.html", [("Dog", translation())])
    page = open_page(path.as_uri(), java_script_enabled=False)
    said = page.locator("body").inner_text()
    assert "source: the black dog of Anna" in said
    assert "translation: le chien noir d'Anna" in said


def damaged(text: str, kind: str) -> str:
    start = text.index('id="recording-0">') + len('id="recording-0">')
    end = text.index("</script>", start)
    return {
        "cut": text[: start + (end - start) // 2] + text[end:],
        "letters": text[: start + 40] + "    " + text[start + 44 :],
        "nothing": text[:start] + text[end:],
    }[kind]


@pytest.mark.parametrize("kind", ["cut", "letters", "nothing"])
def test_a_damaged_page_says_so(tmp_path, open_page, kind):
    path = write_page(tmp_path / "page.html", translation())
    path.write_text(damaged(path.read_text(encoding="utf-8"), kind), encoding="utf-8")
    page = open_page(path.as_uri())
    until(page, "document.querySelector('[role=alert]')?.textContent.length > 0")
    assert "damaged" in page.locator("[role=alert]").text_content()
    assert not page.locator(".body").is_visible()


REFUSAL = """async ([bytes]) => {
  const { Recording } = await import("/browser/recording.js");
  try {
    const recording = new Recording(Uint8Array.from(bytes));
    for (const tap of recording.taps.values()) tap.row(0, 0, 0);
    return "";
  } catch (error) { return `${error.constructor.name}: ${error.message}`; }
}"""


def test_damaged_files_are_refused_with_a_sentence(open_site, open_page, tmp_path):
    page = open_page(open_site({"r": translation()}))
    whole = file_bytes(translation(layers=1, heads=1))
    assert page.evaluate(REFUSAL, [list(whole)]) == ""
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length]

    def with_header(changed: bytes) -> bytes:
        return len(changed).to_bytes(8, "little") + changed + whole[8 + length :]

    broken = {
        "empty": b"",
        "short": whole[:7],
        "cut": whole[:-9],
        "cut in the header": whole[: 8 + length // 2],
        "lying length": (1 << 62).to_bytes(8, "little") + whole[8:],
        "no json": with_header(b"{" * len(header)),
        "no recording": with_header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'),
        "another version": whole.replace(b'\\"version\\": 1', b'\\"version\\": 7', 1),
        "lying shape": whole.replace(b'"shape": [1, 1,', b'"shape": [1, 9,', 1),
        "unknown type": whole.replace(b'"dtype": "F32"', b'"dtype": "F99"', 1),
        "unknown form": whole.replace(b'\\"dense\\"', b'\\"dance\\"', 1),
    }
    for name, file in broken.items():
        assert file != whole, name
        said = page.evaluate(REFUSAL, [list(file)])
        assert said.startswith("DamagedRecording: "), (name, said)
        assert said.endswith("."), (name, said)


def test_a_page_of_a_large_model_is_small_and_its_weights_are_close(tmp_path, open_page):
    """12 layers of 12 heads of width 64 over 512 tokens, numbers that no compression helps with."""
    generator = torch.Generator().manual_seed(3)
    recording = Recording()
    for layer in range(12):
        queries, keys = torch.randn(2, 1, 12, 512, 64, generator=generator)
        recording.relations[f"encoder.{layer}"] = DotRelation(queries, keys, 0.125)
        recording.roles[f"encoder.{layer}"] = ("text", "text")
    recording.label(text=[Text(tuple(f"w{n}" for n in range(512)))])
    path = write_page(tmp_path / "page.html", recording)
    assert path.stat().st_size < 12_000_000
    page = open_page(path.as_uri() + "#view=matrix&tap=encoder.7&head=4&query=100&key=30")
    page.set_default_timeout(60_000)
    page.locator(".facts").first.wait_for()
    note = page.locator(".facts").first.text_content()
    off = float(re.search(r"off by at most ([\d.e-]+)", note)[1])
    row = recording["encoder.7"].weights(example=0, head=4, rows=100)
    said = clean(page.locator(".readout").first.text_content())
    shown = float(re.search(r"“w30” with <?([\d.]+\d)", said)[1])
    assert off < 0.01
    assert shown == pytest.approx(float(row[30]), abs=off + 0.0006)


def _scores(relation):
    return 0.3 * relation.queries.double() @ relation.keys.double().repeat_interleave(2, dim=1).mT


def test_rounding_keeps_to_its_error(tmp_path):
    queries, keys = torch.randn(2, 6, 41, 13), torch.randn(2, 3, 37, 13)
    keys = 2 * keys + 5  # a mean key that all share says nothing
    queries[..., 0] *= 9
    recording = labelled({"a": DotRelation(queries, keys, 0.3)}, {"a": ("q", "k")})
    file = file_bytes(recording)
    for error in (0.004, 0.05):
        path = tmp_path / "r.regard"
        path.write_bytes(restored(rounded(file, error)))
        again = Recording.load(path).relations["a"]
        scores = [_scores(one) for one in (recording.relations["a"], again)]
        off = [s - s.mean(dim=-1, keepdim=True) for s in scores]
        found = float((off[0] - off[1]).std())
        assert error / 3 < found < 1.2 * error
    np.testing.assert_allclose(again.weights(), recording.relations["a"].weights(), atol=0.1)


def test_the_browser_restores_what_was_rounded(tmp_path, open_page, open_site, monkeypatch):
    monkeypatch.setattr(packing, "MAX_BYTES", 6000)
    recording = labelled(
        {"a": DotRelation(torch.randn(1, 4, 31, 11), torch.randn(1, 2, 31, 11), 0.3)}, {"a": ("q", "q")}
    )
    path = write_page(tmp_path / "page.html", recording, view="matrix")
    page = open_page(path.as_uri() + "#head=3&query=7&key=5")
    page.locator(".facts").first.wait_for()
    assert "rounded" in page.locator(".facts").first.text_content()
    page.locator("summary", has_text="table").click()
    rows = page.locator("details .numbers tbody tr")
    rows.nth(2).wait_for()
    found = [[float(t) for t in row.locator("td").all_text_contents()] for row in rows.all()[:3]]
    np.testing.assert_allclose(found, recording["a"].weights(example=0, head=3)[:3], atol=0.05)


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_BYTES", 600)
    with pytest.raises(ConfigError, match="fewer layers"):
        write_page(tmp_path / "page.html", translation())
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_shown(tmp_path):
    with pytest.raises(ConfigError, match="no recording"):
        write_page(tmp_path / "page.html", [])
    with pytest.raises(ConfigError, match="No recorded tap matches 'nowhere'"):
        write_page(tmp_path / "page.html", translation(), taps="nowhere")
    with pytest.raises(ConfigError, match=r"no tap 'encoder\.9\.self'"):
        write_page(tmp_path / "page.html", translation(), address="encoder.9.self")


def test_only_some_taps_and_a_first_one(tmp_path, open_page):
    path = write_page(tmp_path / "page.html", translation(3), taps="*self", address="encoder.1.*", view="matrix")
    page = open_page(path.as_uri())
    page.locator(".matrix").wait_for()
    assert page.locator("aside option").all_text_contents() == [f"encoder.{n}.self" for n in range(3)]
    expect(page.locator("aside select")).to_have_value("encoder.1.self")


def test_the_page_is_the_same_every_time(tmp_path):
    pages = [write_page(tmp_path / name, translation()) for name in ("a.html", "b.html")]
    assert pages[0].read_bytes() == pages[1].read_bytes()
