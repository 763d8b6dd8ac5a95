"""A model behind the explorer: ask, change heads, compare, copy."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from regard.core.errors import DataError

from .conftest import FakeModel, translation, until
from .test_views import clean


def translations(page):
    return [clean(text) for text in page.locator(".pane:visible .facts dd:nth-of-type(2)").all_text_contents()]


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def page(open_site, open_page, model):
    page = open_page(open_site({}, [model]))
    page.locator(".list.queries .word").first.wait_for()
    return page


def test_the_example_is_asked_at_once(page):
    assert translations(page) == ["THE BLACK DOG"]


def test_a_sentence_is_typed(page):
    page.get_by_label("Sentence").fill("a white cat")
    page.get_by_role("button", name="Look", exact=True).click()
    until(page, "document.querySelector('.facts').textContent.includes('A WHITE CAT')")
    assert "Answered in" in page.get_by_role("status").first.text_content()


def test_heads_are_muted_and_both_answers_stand_side_by_side(page, model):
    page.locator("aside button[aria-label='decoder.1.cross, head 2']").click()
    page.get_by_role("button", name="Mute").click()
    page.locator(".pane:visible").nth(1).wait_for()
    assert model.asked[-1].edits == ({"address": "decoder.1.cross", "edit": "mute", "heads": [2]},)
    assert translations(page) == ["THE BLACK DOG", "THE BLACK DOG MUTE"]
    page.get_by_role("button", name="Swap with").click()
    until(page, "document.querySelectorAll('.facts')[1].textContent.includes('MUTE SWAP')")
    assert model.asked[-1].edits[1] == {"address": "decoder.1.cross", "edit": "swap", "heads": [2, 0]}
    page.get_by_role("button", name="Do not mute head 2").click()
    until(page, "!document.querySelectorAll('.facts')[1].textContent.includes('MUTE')")
    page.get_by_role("button", name="Do not swap").click()
    until(page, "document.querySelectorAll('.pane')[1].hidden")


def test_attention_is_frozen_for_another_sentence(page, model):
    page.locator("aside button[aria-label='encoder.0.self, head 1']").click()
    page.get_by_role("button", name="Freeze").click()
    page.get_by_label("Sentence").fill("a red fox")
    page.get_by_label("Sentence").press("Enter")
    page.locator(".pane:visible").nth(1).wait_for()
    (edit,) = model.asked[-1].edits
    assert edit["like"].text == "the black dog"
    assert model.asked[-1].text == "a red fox"


def test_the_lines_that_do_the_same_are_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("aside button[aria-label='decoder.1.cross, head 2']").click()
    page.get_by_role("button", name="Keep only").click()
    page.locator(".pane:visible").nth(1).wait_for()
    page.get_by_role("button", name="Copy as Python").click()
    page.locator(".flash").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "ask('the black dog', [{'address': 'decoder.1.cross', 'edit': 'keep', 'heads': [2]}])"


def test_a_link_asks_again(page, open_page, model):
    page.get_by_label("Sentence").fill("a white cat")
    page.get_by_label("Sentence").press("Enter")
    until(page, "document.querySelector('.facts').textContent.includes('A WHITE CAT')")
    page.get_by_role("button", name="Make uniform").click()
    until(page, "location.hash.includes('edits=')")
    again = open_page(page.url)
    again.locator(".pane:visible").nth(1).wait_for()
    assert translations(again) == ["A WHITE CAT", "A WHITE CAT UNIFORM"]
    # Another link in the same window asks anew, too.
    again.evaluate("location.hash = '#ask=a red fox'")
    until(again, "document.querySelector('.facts').textContent.includes('A RED FOX')")
    expect(again.get_by_label("Sentence")).to_have_value("a red fox")
    until(again, "document.querySelectorAll('.pane')[1].hidden")


def test_a_model_that_fails_says_why_and_can_be_asked_again(page, model, monkeypatch):
    def fails(question):
        raise DataError("The model knows no word of this.")

    with monkeypatch.context() as patched:
        patched.setattr(model, "look", fails)
        page.get_by_role("button", name="Look", exact=True).click()
        until(page, "document.querySelector('.live .status').textContent.includes('knows no word')")
    page.get_by_role("button", name="Look", exact=True).click()
    until(page, "document.querySelector('.live .status').textContent.includes('Answered')")


def test_a_picture_is_chosen(open_site, open_page, tmp_path):
    class Camera(FakeModel):
        reads = "picture"
        example = ""

        def look(self, question):
            self.asked.append(question)
            recording = translation()
            recording.outputs["translation"] = question.name
            return recording

    camera = Camera()
    page = open_page(open_site({}, [camera]))
    page.locator("input[type=file]").wait_for()
    page.get_by_role("button", name="Look", exact=True).click()
    assert "Choose a picture" in page.get_by_role("status").first.text_content()
    (tmp_path / "dog.png").write_bytes(b"\x89PNG and so on")
    page.locator("input[type=file]").set_input_files(tmp_path / "dog.png")
    page.locator(".list.queries .word").first.wait_for()
    assert camera.asked[0].picture == b"\x89PNG and so on"
    assert translations(page) == ["dog.png"]
