"""One HTML file that shows where a model looked: it opens by a double click and asks the network for nothing.

The text of each sentence (source, translation, n-best list) is plain HTML; the maps are JSON in the page, weights in
thousandths, and the script `page.js` draws them. Layers and heads can be chosen; a word or cell under the pointer, or
reached with the keyboard, shows where it looks. Each map is also there as a table.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from regard.core.errors import ConfigError, RecordingError
from regard.core.files import write_text
from regard.plots.labels import shown
from regard.plots.palette import DARK, LIGHT, Palette
from regard.plots.view import View, matching, size, view
from regard.recording import Recording

MAX_POSITIONS = 400
MAX_WEIGHTS = 6_000_000
"""About four bytes each in the file."""

_LABEL_WIDTH = 18


def write_page(
    path: str | Path,
    recordings: Recording | Sequence[tuple[str, Recording]],
    *,
    title: str = "Where the model looks",
    introduction: str = "",
    address: str | None = None,
    taps: str = "*",
) -> Path:
    """Writes the page for one recording, or for several with a title each; a recording may hold several examples.

    `address` is the tap that is shown first, `taps` a pattern of those that go into the page. What a recording's
    `outputs` say about its example is shown beside the maps: `source`, `translation`, `score`, `alternatives` and
    `alignment` (Pharaoh text); with several examples, `outputs["examples"]` is a list of such records.
    """
    named = [("", recordings)] if isinstance(recordings, Recording) else list(recordings)
    if not named:
        raise ConfigError("There is nothing to put into a page: no recording was given.")
    _check_size(named, taps)
    sections: list[str] = []
    sentences: list[dict[str, Any]] = []
    for name, recording in named:
        addresses = matching(recording, taps)
        count = recording[addresses[0]].shape[0]
        for example, record in enumerate(_records(recording, count)):
            views = [view(recording, each, example, MAX_POSITIONS, "a page") for each in addresses]
            heading = name or str(record.get("source") or f"Sentence {len(sections) + 1}")
            if name and count > 1:
                heading = f"{name} {example + 1}"
            sections.append(_section(len(sections), heading, record))
            sentences.append(_sentence(views, record, address))
    page = Template(_file("page.html")).substitute(
        title=html.escape(title),
        introduction=f"<p>{html.escape(introduction)}</p>" if introduction else "",
        style=_variables() + _file("page.css"),
        sections="\n".join(sections),
        data=_json_in_html({"palettes": {"light": asdict(LIGHT), "dark": asdict(DARK)}, "sentences": sentences}),
        script=_file("page.js"),
    )
    path = Path(path)
    write_text(path, page.encode("utf-8", errors="replace").decode("utf-8"))
    return path


def _check_size(named: Sequence[tuple[str, Recording]], taps: str) -> None:
    """Before any weight is computed."""
    total = 0
    for _, recording in named:
        for address in matching(recording, taps):
            recorded = recording[address]
            total += sum(math.prod(size(recorded, example)) for example in range(recorded.shape[0]))
    if total > MAX_WEIGHTS:
        raise ConfigError(
            f"The page would hold {total:,} weights, and more than {MAX_WEIGHTS:,} make a file that browsers are slow "
            f"with. Put fewer sentences into it, or fewer layers with a pattern such as taps='*cross*'."
        )


def _records(recording: Recording, count: int) -> list[Mapping[str, Any]]:
    """What is said about each example; nothing where nothing is said."""
    records = recording.outputs.get("examples")
    if records is None:
        records = [recording.outputs] if count == 1 else [{}] * count
    if len(records) != count:
        raise ConfigError(f"The recording holds {count} examples, but its outputs describe {len(records)}.")
    return list(records)


def _section(number: int, heading: str, record: Mapping[str, Any]) -> str:
    """The text of one sentence; the script fills the element of class `look`."""
    facts = [
        _fact(name, record[key])
        for name, key in (("Source", "source"), ("Translation", "translation"), ("Alignment", "alignment"))
        if record.get(key) is not None
    ]
    if record.get("score") is not None:
        facts.append(_fact("Score", f"{float(record['score']):.3f}"))
    alternatives = "".join(f"<li>{_alternative(entry)}</li>" for entry in record.get("alternatives") or ())
    if alternatives:
        facts.append(f"<dt>Other translations</dt><dd><ol>{alternatives}</ol></dd>")
    return (
        f'<section class="sentence" aria-labelledby="heading-{number}">'
        f'<h2 id="heading-{number}" dir="auto">{html.escape(heading)}</h2>'
        f"<dl>{''.join(facts)}</dl>"
        f'<div class="look" data-sentence="{number}"></div>'
        "</section>"
    )


def _fact(name: str, value: object) -> str:
    return f'<dt>{name}</dt><dd><span dir="auto">{html.escape(str(value))}</span></dd>'


def _alternative(entry: Any) -> str:
    """A translation, or a record with its score."""
    text, score = (entry.get("translation", ""), entry.get("score")) if isinstance(entry, Mapping) else (entry, None)
    number = f' <small class="score">{float(score):.3f}</small>' if score is not None else ""
    return f'<span dir="auto">{html.escape(str(text))}</span>{number}'


def _sentence(views: Sequence[View], record: Mapping[str, Any], address: str | None) -> dict[str, Any]:
    """What the script needs; labels are stored once for each role, however many maps share them."""
    axes: dict[str, list[list[str]]] = {}
    maps = []
    for one in views:
        for role, labels in ((one.queries, one.rows), (one.keys, one.columns)):
            if len(labels) >= len(axes.get(role, ())):
                axes[role] = [[shown(label, _LABEL_WIDTH), label] for label in labels]
        thousandths = np.rint(one.weights * 1000).astype(int)
        heads, rows, columns = one.weights.shape
        maps.append(
            {
                "address": one.address,
                "queries": one.queries,
                "keys": one.keys,
                "shape": [heads, rows, columns],
                "weights": thousandths.ravel().tolist(),
                "links": _links(record, one),
            }
        )
    return {"axes": axes, "maps": maps, "first": _first(views, address)}


def _first(views: Sequence[View], address: str | None) -> int:
    """The tap asked for, else the last but one that reads across two axes, else the first."""
    addresses = [one.address for one in views]
    if address is not None:
        if address not in addresses:
            raise ConfigError(f"There is no tap {address!r} in the page; it shows: {', '.join(addresses)}.")
        return addresses.index(address)
    across = [place for place, one in enumerate(views) if one.queries != one.keys]
    return across[-2:][0] if across else 0


def _links(record: Mapping[str, Any], one: View) -> list[list[int]]:
    """The alignment as outlines, where tokens are words: Pharaoh text counts words, and a map may add their end."""
    words = [len(str(record.get(key) or "").split()) for key in ("source", "translation")]
    extra = len(one.columns) - words[0], len(one.rows) - words[1]
    if one.queries == one.keys or not record.get("alignment") or not set(extra) <= {0, 1}:
        return []
    links = []
    for link in str(record["alignment"]).split():
        ends = re.fullmatch(r"(\d+)-(\d+)", link)
        if not ends or int(ends[1]) >= words[0] or int(ends[2]) >= words[1]:
            raise RecordingError(
                f"The recording's alignment {record['alignment']!r} does not fit its sentences of {words[0]} and "
                f"{words[1]} words at {link!r}; links are written source-target, counted from 0."
            )
        links.append([int(ends[1]), int(ends[2])])
    return links


def _json_in_html(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever the tokens are."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _variables() -> str:
    def block(colours: Palette) -> str:
        plain = {name: value for name, value in asdict(colours).items() if isinstance(value, str)}
        gradient = f"linear-gradient(to right, {', '.join(colours.weights)})"
        accent = colours.weights[-3]
        return "".join(
            f"--{name}:{value};" for name, value in {**plain, "gradient": gradient, "accent": accent}.items()
        )

    return f":root{{{block(LIGHT)}}}@media(prefers-color-scheme:dark){{:root{{{block(DARK)}}}}}\n"


def _file(name: str) -> str:
    return resources.files("regard.plots").joinpath(name).read_text(encoding="utf-8")
