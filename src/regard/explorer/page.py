"""One HTML file to explore recordings in: it opens by a double click and asks the network for nothing.

The page holds the recordings themselves, compressed, and the browser computes weights from queries and keys when they
are looked at. So a page for 12 layers of 12 heads over 512 tokens stays below 12 MB, where its maps as numbers would be
a hundred times that. Recordings that do not fit as they are have their queries and keys rounded; the page then says so,
and how far weights are off.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from regard.core.errors import ConfigError
from regard.core.files import write_text
from regard.explorer import modules
from regard.explorer.packing import file_bytes, packed
from regard.recording import Recording

_TOLD = ("source", "translation", "caption", "class")


def write_page(
    path: str | Path,
    recordings: Recording | Sequence[tuple[str, Recording]],
    *,
    title: str = "Where the model looks",
    introduction: str = "",
    address: str | None = None,
    taps: str = "*",
    view: str | None = None,
) -> Path:
    """Writes the page for one recording, or for several with a name each; a recording may hold several examples.

    `address` is the tap that is shown first (of a pattern, the first that fits), `taps` a pattern of those that go into
    the page, `view` what is shown first: words, matrix, picture, heads, layers or rollout. What a recording's `outputs`
    say about its example (`source`, `translation`, `score`, `alternatives`, `step`, ...) is shown beside the maps.
    """
    named = [("", recordings)] if isinstance(recordings, Recording) else list(recordings)
    if not named:
        raise ConfigError("There is nothing to put into a page: no recording was given.")
    chosen = [(name, matching(recording, taps)) for name, recording in named]
    path = Path(path)
    write_text(path, page(chosen, title, introduction, first_state(chosen, address, view)))
    return path


def matching(recording: Recording, taps: str) -> Recording:
    """Only the taps that fit the pattern."""
    found = [address for address in recording if fnmatch.fnmatchcase(address, taps)]
    if not found:
        known = ", ".join(recording) or "nothing"
        raise ConfigError(f"No recorded tap matches {taps!r}, so there is nothing to show. Recorded: {known}.")
    roles = {address: recording.roles[address] for address in found}
    used = {role for pair in roles.values() for role in pair}
    axes = {role: given for role, given in recording.axes.items() if role in used}
    return Recording({each: recording.relations[each] for each in found}, roles, axes, recording.outputs)


def first_state(named: Sequence[tuple[str, Recording]], address: str | None, view: str | None) -> dict[str, Any]:
    """What is looked at when the page opens."""
    if address is not None and set("*?[") & set(address):
        address = next((each for _, one in named for each in one if fnmatch.fnmatchcase(each, address)), address)
    if address is not None and not any(address in one for _, one in named):
        known = ", ".join(dict.fromkeys(each for _, one in named for each in one))
        raise ConfigError(f"There is no tap {address!r} in the page; it shows: {known}.")
    pictured = all("pictures" in one.outputs for _, one in named)
    chosen = {"tap": address, "view": view or ("picture" if pictured else None)}
    return {name: value for name, value in chosen.items() if value is not None}


def page(named: Sequence[tuple[str, Recording]], title: str, introduction: str, first: Mapping[str, Any]) -> str:
    """The whole text of the file."""
    script = f'{modules.joined("page.js")}\nstart(document.getElementById("regard"));\n'
    names = [name or str(one.outputs.get("source") or "Recording") for name, one in named]
    texts = packed([file_bytes(one) for _, one in named])
    contents = {
        "title": title,
        "introduction": introduction,
        "first": dict(first),
        "entries": [
            {**_entry(name, one), "note": each.note} for name, (_, one), each in zip(names, named, texts, strict=True)
        ],
    }
    return Template(resources.files("regard.explorer").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(_writable(title)),
        style=modules.read("style.css"),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        prose="\n".join(_prose(name, one) for name, (_, one) in zip(names, named, strict=True)),
        contents=json_in_html(contents),
        recordings="\n".join(
            f'<script type="application/octet-stream" id="recording-{number}">{each.text}</script>'
            for number, each in enumerate(texts)
        ),
        script=script,
    )


def _entry(name: str, recording: Recording) -> dict[str, Any]:
    step = recording.outputs.get("step")
    return {"name": name, **({"step": step} if isinstance(step, int) else {})}


def _prose(name: str, recording: Recording) -> str:
    """What can be read without the script."""
    records = recording.outputs.get("examples") or recording.outputs.get("predictions") or [recording.outputs]
    told = [f"{key}: {record[key]}" for record in records for key in _TOLD if record.get(key) is not None]
    listed = "".join(f'<li dir="auto">{html.escape(_writable(each))}</li>' for each in told)
    return f'<h2 dir="auto">{html.escape(_writable(name))}</h2><ul>{listed}</ul>'


def json_in_html(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever the texts are."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _writable(text: str) -> str:
    """A lone surrogate cannot be written as UTF-8."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
