"""The notebook's widget: the same modules, recordings as bytes, and a page for readers without a kernel."""

from __future__ import annotations

import json

import pytest

import regard
from regard.core.errors import ConfigError
from regard.explorer import modules
from regard.explorer.packing import file_bytes

from .conftest import translation, until

HOST = """<!doctype html><html lang="en"><title>notebook</title><div id="cell"></div><script type="module">
%s
const values = %s;
values.recordings = values.recordings.map((bytes) => new DataView(Uint8Array.from(bytes).buffer));
render({ model: { get: (name) => values[name] }, el: document.getElementById("cell") });
</script></html>"""


def test_it_holds_the_recordings_and_what_is_shown_first() -> None:
    widget = regard.show({"one": translation(), "two": translation(seed=8)}, address="decoder.1.cross", view="matrix")
    assert widget.names == ["one", "two"]
    assert widget.recordings[1] == file_bytes(translation(seed=8))
    assert widget.first == {"tap": "decoder.1.cross", "view": "matrix"}
    widget.close()


def test_it_draws_in_a_cell(tmp_path, open_page) -> None:
    widget = regard.show(translation(), view="matrix")
    values = {name: getattr(widget, name) for name in ("names", "steps", "first", "title")}
    values["recordings"] = [list(each) for each in widget.recordings]
    path = tmp_path / "cell.html"
    path.write_text(HOST % (widget._esm.replace("export default", "const unused ="), json.dumps(values)), "utf-8")
    page = open_page(path.as_uri())
    page.locator(".matrix").wait_for()
    until(page, "document.querySelector('.matrix canvas').width > 300")
    assert page.evaluate("location.hash") == ""
    widget.close()


def test_a_reader_without_a_kernel_gets_a_page(tmp_path, open_page) -> None:
    widget = regard.show(translation())
    bundle, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    path = tmp_path / "docs.html"
    path.write_text(f"<!doctype html><title>docs</title>{bundle['text/html']}", "utf-8")
    page = open_page(path.as_uri())
    page.frame_locator("iframe").locator(".list.queries .word").first.wait_for()
    widget.close()


def test_what_cannot_be_shown() -> None:
    with pytest.raises(ConfigError, match="no recording"):
        regard.show({})
    with pytest.raises(ConfigError, match="no tap"):
        regard.show(translation(), address="nowhere")


def test_joined_modules_export_what_the_entry_exports() -> None:
    text = modules.joined("widget.js")
    assert text.rstrip().endswith("export { render };")
    assert "import " not in text.replace("important", "")
    assert text.index("const module_elements") < text.index("const module_app")


def test_colours_are_those_of_the_pictures() -> None:
    """plots/palette.py and the style sheet say the same, so that a figure and the explorer look alike."""
    from regard.plots.palette import DARK, LIGHT

    style = modules.read("style.css")
    for palette in (LIGHT, DARK):
        for place, colour in enumerate(palette.weights):
            assert f"--weight-{place}: {colour};" in style
        assert f"--background: {palette.background};" in style
        assert f"--outline: {palette.outline};" in style
