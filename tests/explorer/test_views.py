"""Every view in a real browser: pointer, keyboard, link, colours, narrow windows, long inputs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from regard.core.axes import Grid, Text
from regard.core.relations import DenseRelation, DotRelation
from regard.recording import Recording

from .conftest import PIXEL, SOURCE, TARGET, labelled, picture, translation, until


def readout(page):
    return page.locator(".pane:visible .readout").first


def clean(text: str | None) -> str:
    return re.sub("[\u2068\u2069]", "", text or "")


@pytest.fixture
def words(open_site, open_page):
    page = open_page(open_site({"one": translation(), "two": translation(seed=8)}))
    page.locator(".list.queries .word").first.wait_for()
    return page


def largest(recording: Recording, address: str, query: int) -> tuple[int, float]:
    row = recording[address].weights(example=0, rows=query).mean(dim=0)
    return int(row.argmax()), float(row.max())


def test_words_show_where_they_look(words):
    # The last but one attention between two axes comes first.
    expect(words.locator("aside select")).to_have_value("decoder.0.cross")
    words.locator(".list.queries .word", has_text="chien").hover()
    key, weight = largest(translation(), "decoder.0.cross", 1)
    said = clean(readout(words).text_content())
    assert said.startswith(f"“chien” looks at “{SOURCE[key]}” {weight:.2f}")
    shaded = words.locator(".list.keys .word").nth(key)
    expect(shaded).to_have_attribute("data-weight", f"{weight:.2f}")
    words.locator("h1").hover()
    assert "Point at a word" in readout(words).text_content()
    words.locator(".list.queries .word", has_text="chien").click()
    words.locator("h1").hover()
    assert "“chien” looks at" in clean(readout(words).text_content())


def test_matrix_reads_out_weight_and_labels(words):
    words.get_by_role("tab", name="Matrix").click()
    board = words.locator(".matrix")
    place = board.bounding_box()
    words.mouse.move(place["x"] + 150, place["y"] + 160)
    until(words, "document.querySelector('.readout').textContent.includes('looks at')")
    said = clean(readout(words).text_content())
    found = re.match(r"“(.+?)” looks at “(.+?)” with <?(0\.?\d*|1\.\d*)", said)
    assert found, said
    query, key = TARGET.index(found[1]), SOURCE.index(found[2])
    weight = float(translation()["decoder.0.cross"].weights(example=0, rows=query).mean(dim=0)[key])
    assert float(found[3]) == pytest.approx(weight, abs=0.006)


def test_zero_is_the_background_and_the_largest_is_dark(open_site, open_page):
    weights = torch.zeros(1, 1, 2, 2)
    weights[0, 0, 0, 0] = 1.0
    recording = labelled({"a": DenseRelation(weights)}, {"a": ("q", "k")}, q=[Text(("x", "y"))], k=[Text(("u", "v"))])
    page = open_page(open_site({"r": recording}) + "#view=matrix")
    page.wait_for_selector(".matrix canvas")
    page.wait_for_timeout(300)
    look = """() => {
      const view = document.querySelector(".matrix canvas");
      const at = (x, y) => [...view.getContext("2d").getImageData(x, y, 1, 1).data];
      return { drawn: [at(view.__x ?? 70, 70), at(100, 100)], size: [view.width, view.height] };
    }"""
    colours = {tuple(c) for c in page.evaluate(look)["drawn"]}
    assert (255, 255, 255, 255) in colours or any(sum(c[:3]) > 740 for c in colours)
    assert any(sum(c[:3]) < 300 for c in colours)


def test_heads_and_layers_lead_to_a_head(words):
    words.get_by_role("tab", name="Heads").click()
    words.locator(".view button[aria-label='encoder.1.self, head 2']").click()
    expect(words.locator("aside select")).to_have_value("encoder.1.self")
    expect(words.get_by_role("tab", name="Words")).to_have_attribute("aria-selected", "true")
    words.get_by_role("tab", name="Layers").click()
    words.get_by_role("button", name="Distance").click()
    words.locator("circle").first.wait_for()
    expect(words.locator("circle")).to_have_count(2 * 3)  # source looks at itself in two layers; between axes is none
    words.locator("button.link[aria-label^='encoder.0.self, head 1']").click()
    expect(words.locator("aside button[aria-pressed=true]")).to_have_attribute("aria-label", "encoder.0.self, head 1")


def test_rollout_shows_a_row_and_its_way(words):
    words.get_by_role("tab", name="Rollout").click()
    words.locator(".view .positions button", has_text="noir").click()
    until(words, "document.querySelector('.readout').textContent.includes('noir')")
    assert "comes from" in readout(words).text_content()
    steps = words.locator(".steps li").all_text_contents()
    assert steps == ["decoder.0.cross", "encoder.0.self"]


def test_picture_follows_the_pointer(open_site, open_page):
    recording = picture()
    page = open_page(open_site({"r": recording}) + "#view=picture&head=1")
    board = page.locator(".board")
    place = board.bounding_box()
    # Row 2, column 4 of 3 x 5.
    page.mouse.move(place["x"] + place["width"] * 0.7, place["y"] + place["height"] * 0.5)
    until(page, "document.querySelector('.readout').textContent.startsWith('the patch in row 2, column 4')")
    row = recording["encoder.0.attention"].weights(example=0, head=1, rows=1 + 5 + 3)
    assert f"{float(row.max()):.2f}" in readout(page).text_content()
    page.locator(".positions .word", has_text="class").hover()
    until(page, "document.querySelector('.readout').textContent.includes('class')")
    assert page.locator(".facts").first.text_content().startswith("Classcat (75.0 %)")


def test_words_about_a_picture(open_site, open_page):
    weights = torch.full((1, 1, 2, 6), 0.02)
    weights[0, 0, 0, 4], weights[0, 0, 1, 0] = 0.9, 0.9
    axes = {"caption": [Text(("a", "dog"))], "patches": [Grid(2, 3, 20, 30)]}
    recording = labelled({"cross": DenseRelation(weights)}, {"cross": ("caption", "patches")}, **axes)
    recording.outputs["pictures"] = [PIXEL]
    page = open_page(open_site({"r": recording}) + "#view=picture")
    page.locator(".positions .word", has_text="dog").hover()
    until(page, "document.querySelector('.readout').textContent.includes('row 1, column 1')")
    page.wait_for_timeout(100)
    alpha = """() => {
      const view = document.querySelector(".board canvas");
      const at = (x, y) => view.getContext("2d").getImageData(view.width * x, view.height * y, 1, 1).data[3];
      return [at(0.1, 0.1), at(0.5, 0.9), at(0.9, 0.1)];
    }"""
    first, other, third = page.evaluate(alpha)
    assert first > 150 > 30 > max(other, third)


def test_the_keyboard_reaches_everything(words):
    words.locator(".matrix, .words").first.focus()
    for _ in range(2):
        words.keyboard.press("ArrowDown")
    assert "“chien” looks at" in clean(words.locator("[aria-live=polite]").text_content())
    words.keyboard.press("]")
    expect(words.locator("aside button[aria-pressed=true]")).to_have_attribute("aria-label", "decoder.0.cross, head 0")
    words.keyboard.press("}")
    expect(words.locator("aside select")).to_have_value("encoder.1.self")
    words.keyboard.press("2")
    expect(words.get_by_role("tab", name="Matrix")).to_have_attribute("aria-selected", "true")
    words.locator(".matrix").focus()
    words.keyboard.press("ArrowRight")
    words.keyboard.press("ArrowRight")
    assert "with" in words.locator("[aria-live=polite]").text_content()
    words.keyboard.press("Escape")
    assert "Point at a cell" in readout(words).text_content()
    words.locator("aside button[aria-pressed=true]").focus()
    words.keyboard.press("ArrowDown")
    expect(words.locator("aside button[aria-pressed=true]")).to_have_attribute("aria-label", "decoder.1.cross, head 0")


def test_a_link_restores_the_view(words, open_page):
    words.locator("aside button[aria-label='encoder.1.self, head 2']").click()
    words.get_by_role("tab", name="Matrix").click()
    words.locator(".matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        words.keyboard.press(key)
    words.get_by_role("button", name="Theme").click()
    words.get_by_label("Beside it").select_option("1")
    until(words, "location.hash.includes('compare=1') && location.hash.includes('key=2')")
    said = clean(readout(words).text_content())
    again = open_page(words.url)
    until(again, "document.querySelector('.readout')?.textContent.includes('with')")
    assert clean(readout(again).text_content()) == said
    expect(again.locator("aside button[aria-pressed=true]")).to_have_attribute("aria-label", "encoder.1.self, head 2")
    expect(again.locator(".regard")).to_have_attribute("data-theme", "dark")
    expect(again.locator(".pane:visible")).to_have_count(2)


@pytest.mark.parametrize(
    "hash", ["#recording=99&tap=nowhere&head=77&query=1e9", "#query=-1&zoom=NaN&view=none", "#%%%"]
)
def test_a_link_that_makes_no_sense_does_no_harm(open_site, open_page, hash):
    page = open_page(open_site({"one": translation()}) + hash)
    page.locator(".list.queries .word").first.wait_for()


def test_two_recordings_side_by_side(words):
    words.get_by_label("Beside it").select_option("1")
    panes = words.locator(".pane:visible")
    panes.nth(1).wait_for()
    panes.nth(0).locator(".list.queries .word", has_text="noir").hover()
    said = [clean(text) for text in words.locator(".pane:visible .readout").all_text_contents()]
    for text, seed in zip(said, (7, 8), strict=True):
        key, weight = largest(translation(seed=seed), "decoder.0.cross", 2)
        assert text.startswith(f"“noir” looks at “{SOURCE[key]}” {weight:.2f}")


def test_training_as_a_time_line(open_site, open_page):
    steps = {}
    for step in (300, 20, 100):
        steps[f"step-{step}"] = translation(sharpness=step / 100)
        steps[f"step-{step}"].outputs["step"] = step
    page = open_page(open_site(steps))
    slider = page.locator("input[type=range]")
    slider.wait_for()
    shown = []
    for _ in range(3):
        page.wait_for_timeout(150)
        shown.append(page.locator("output").text_content())
        slider.press("ArrowRight")
    assert shown[0] == "step 300"  # the first file; the slider stands where it is among the steps
    slider.press("Home")
    until(page, "document.querySelector('output').textContent === 'step 20'")
    assert page.locator(".facts dd").last.text_content() == "20"


def exported(page, kind: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=kind, exact=True).click()
    return Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("view", ["words", "matrix", "picture", "heads", "layers", "rollout"])
def test_what_is_seen_can_be_saved(open_site, open_page, view):
    recording = picture() if view == "picture" else translation()
    page = open_page(open_site({"r": recording}) + f"#view={view}&query=2")
    page.locator(".pane .view").first.wait_for()
    page.wait_for_timeout(400)
    svg = exported(page, "SVG").decode()
    parsed = page.evaluate(
        "(text) => new DOMParser().parseFromString(text, 'image/svg+xml').documentElement.nodeName", svg
    )
    assert parsed == "svg"
    assert svg.count("<rect") + svg.count("<path") + svg.count("<image") + svg.count("<circle") > 3
    if view == "matrix":
        assert all(word.replace("'", "'") in svg for word in TARGET[:3])
    assert exported(page, "PNG").startswith(b"\x89PNG")


def test_dark_by_the_systems_wish_and_by_choice(open_site, open_page):
    page = open_page(open_site({"one": translation()}), color_scheme="dark")
    page.locator(".regard .tabs").wait_for()
    background = "getComputedStyle(document.querySelector('.regard')).backgroundColor"
    assert page.evaluate(background) == "rgb(18, 22, 28)"
    for expected in ("rgb(18, 22, 28)", "rgb(255, 255, 255)"):
        page.get_by_role("button", name="Theme").click()
        assert page.evaluate(background) == expected


@pytest.mark.parametrize("view", ["words", "matrix", "picture", "heads", "layers", "rollout"])
def test_a_narrow_window_never_scrolls_sideways(open_site, open_page, view):
    recording = picture() if view == "picture" else translation(heads=12)
    page = open_page(
        open_site({"r": recording, "s": recording}) + f"#view={view}&query=1&compare=1",
        viewport={"width": 360, "height": 740},
    )
    page.locator(".pane .view").first.wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


WEIRD = (
    "مرحبا", "שלום", "你好世界", "Donaudampfschifffahrtsgesellschaftskapitän", "", "🧑‍🚀", "</script><b>x</b>",
    "\n\x00\x7f", "  ", "\u202eabc", "<img src=x onerror=alert(1)>",
)  # fmt: skip


def test_tokens_of_all_kinds_are_drawn_and_none_is_markup(open_site, open_page):
    relation = DenseRelation(torch.rand(1, 1, len(WEIRD), len(WEIRD)).softmax(dim=-1))
    recording = labelled({"a": relation}, {"a": ("q", "q")}, q=[Text(WEIRD)])
    page = open_page(open_site({"r": recording}))
    page.locator(".list.queries .word").first.wait_for()
    shown = page.locator(".list.queries .word").all_text_contents()
    assert shown[:3] == list(WEIRD[:3])
    assert shown[3].endswith("…") or shown[3] == WEIRD[3]
    assert shown[4] == "∅"
    assert shown[7] == "␊␀\ufffd"
    assert shown[8] == "␣␣"
    assert shown[9] == "abc"
    expect(page.locator(".view b, .view img:visible")).to_have_count(0)
    for view in ("Matrix", "Heads", "Layers", "Rollout"):
        page.get_by_role("tab", name=view).click()
        page.wait_for_timeout(60)
    page.locator("summary", has_text="table").click()
    expect(page.locator(".numbers table b")).to_have_count(0)


@pytest.mark.parametrize("count", [1, 10_000])
def test_one_token_and_ten_thousand(open_site, open_page, count):
    queries, keys = torch.randn(2, 1, 1, count, 4)
    tokens = tuple(f"w{n}" for n in range(count))
    recording = labelled({"a": DotRelation(queries, keys, 1.0)}, {"a": ("q", "q")}, q=[Text(tokens)])
    page = open_page(open_site({"r": recording}) + f"#query={count - 1}")
    page.locator(".list.queries .word").first.wait_for()
    assert page.locator(".list.queries .word").count() < 80
    page.locator(".words").focus()
    page.keyboard.press("ArrowUp")
    there = f"w{max(0, count - 2)}"
    until(page, f"document.querySelector('.readout').textContent.includes('{there}')")
    page.get_by_role("tab", name="Matrix").click()
    page.wait_for_timeout(200)
    page.get_by_role("tab", name="Words").click()


def test_long_maps_scroll_in_tiles(open_site, open_page):
    """4,096 tokens, 2 heads of width 32: nothing whole is computed, and no frame is held up."""
    queries, keys = torch.randn(2, 1, 2, 4096, 32).bfloat16()
    recording = labelled({"a": DotRelation(queries, keys, 0.2)}, {"a": ("q", "q")}, q=[Text(("w",) * 4096)])
    page = open_page(open_site({"r": recording}) + "#view=matrix&head=0&zoom=16")
    page.locator(".matrix canvas").wait_for()
    page.wait_for_timeout(500)
    slices = page.evaluate("""async () => {
      const view = document.querySelector(".matrix");
      const { scrollWidth, scrollHeight, clientHeight } = view;
      const times = [];
      let last = performance.now();
      for (let n = 0; n < 40; n++) {
        view.scrollTop += 60;
        view.scrollLeft += 25;
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - last);
        last = performance.now();
      }
      return { scrollHeight, clientHeight, left: view.scrollLeft, top: view.scrollTop, worst: Math.max(...times) };
    }""")
    assert slices["scrollHeight"] > 5 * slices["clientHeight"]
    assert slices["top"] > 2000
    assert slices["left"] > 900
    place = page.locator(".matrix").bounding_box()
    page.mouse.move(place["x"] + 200, place["y"] + 200)
    until(page, "document.querySelector('.readout').textContent.includes('looks at')")


def test_numbers_can_be_read_as_a_table(words):
    words.locator("summary", has_text="table").click()
    rows = words.locator("details .numbers tbody tr")
    rows.nth(len(TARGET) - 1).wait_for()
    expect(rows).to_have_count(len(TARGET))
    expected = translation()["decoder.0.cross"].weights(example=0).mean(dim=0)
    first = [float(text) for text in rows.first.locator("td").all_text_contents()]
    assert first == pytest.approx(expected[0].tolist(), abs=0.0006)


def test_several_examples_in_one_recording(open_site, open_page):
    weights = torch.rand(2, 1, 3, 4).softmax(dim=-1)
    axes = {"q": [Text(("a", "b", "c")), Text(("d",))], "k": [Text(("x", "y", "z", "u")), Text(("v", "w"))]}
    recording = labelled({"t": DenseRelation(weights)}, {"t": ("q", "k")}, **axes)
    recording.outputs["examples"] = [{"source": "first"}, {"source": "second"}]
    page = open_page(open_site({"r": recording}))
    page.locator(".list.queries .word").first.wait_for()
    page.locator("select:visible").first.select_option("1")
    assert page.locator(".list.queries .word").all_text_contents() == ["d"]
    assert page.locator(".list.keys .word").all_text_contents() == ["v", "w"]
    assert page.locator(".facts dd").first.text_content() == "second"
