"""`--view`: one name for each picture that `regard look` draws, of a run or of a recording that was kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import tyro
from matplotlib.figure import Figure

from regard.cli.options import Shared
from regard.core.axes import Grid
from regard.core.errors import ConfigError, UnknownNameError
from regard.plots import (
    draw_alignment,
    draw_distance,
    draw_entropy,
    draw_heads,
    draw_layers,
    draw_overlay,
    draw_rollout,
    draw_strip,
    draw_words,
)
from regard.plots.view import chosen, position
from regard.recording import RecordedMap, Recording

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, kw_only=True)
class Viewing(Shared):
    """What every kind of look takes."""

    view: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The picture to draw: alignment, words, heads, overlay or strip of one attention; layers, distance, entropy or
    rollout of several; positions of the model. What suits the task when left out."""

    tap: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The attention to draw, such as decoder.2.cross; where several are drawn a pattern, such as encoder.*"""

    head: int | None = None
    """The head to draw, counted from 0, in alignment, words and strip; the mean of all when left out."""

    query: Annotated[str | None, tyro.conf.arg(metavar="POSITION")] = None
    """The position that looks, in words, overlay and rollout: its number, counted from 0, or its label, such as a word,
    [CLS], or row and column of a patch, 3,4."""

    out: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = ()
    """Files to write, one or several: .png, .svg, .pdf, .html (a page to explore) or .regard (the recording). A
    .png in the run's folder when left out."""

    dark: tyro.conf.FlagCreatePairsOff[bool] = False
    """Light on dark."""


Drawing: TypeAlias = Callable[[Recording, str, int, Viewing], Figure]
"""From a recording, the address of a tap (or a pattern) and the number of an example."""


def draw(recording: Recording, name: str, address: str, options: Viewing, example: int = 0) -> Figure:
    """The picture of that name; `address` is the tap to draw where the options name none."""
    check_view(name)
    across_taps = name in WHOLE
    tap = options.tap or ("*" if across_taps else address)
    if not across_taps:
        if is_pattern(tap):
            raise ConfigError(f"--view {name} draws one attention, and --tap {tap} is a pattern. Name one address.")
        recording[tap]  # a wrong name is said with the one that was meant
    return VIEWS[name](recording, tap, example, options)


def check_view(name: str | None, *others: str) -> None:
    """Before anything is computed; `others` are views that a task adds."""
    if name is not None and name not in (*VIEWS, *others):
        raise UnknownNameError("view", name, (*VIEWS, *others))


def check_endings(options: Viewing, endings: tuple[str, ...]) -> None:
    for path in options.out:
        if path.suffix.lower() not in endings:
            raise ConfigError(f"{path}: a file to look at ends in {', '.join(endings)}; choose one of them.")


def is_pattern(tap: str) -> bool:
    return bool(set("*?[") & set(tap))


def looks_at_picture(recorded: RecordedMap) -> bool:
    return any(isinstance(axis, Grid) for axis in recorded.key_axes)


def default_view(recording: Recording, address: str, options: Viewing) -> str:
    """What suits the axes of a tap, when no view is named."""
    if options.tap is not None and is_pattern(options.tap):
        return "layers"
    recorded = recording[options.tap or address]
    if looks_at_picture(recorded):
        return "overlay" if options.query is not None or recorded.queries == recorded.keys else "strip"
    return "heads" if recorded.shape[1] > 1 and options.head is None else "alignment"


def default_tap(recording: Recording) -> str:
    """The last attention to a picture; else the last from one axis to another; else the last."""
    addresses = recording.addresses
    pictures = [address for address in addresses if looks_at_picture(recording[address])]
    across = [address for address in addresses if recording[address].queries != recording[address].keys]
    return (pictures or across or addresses)[-1]


def _labels(recorded: RecordedMap) -> tuple[list[str], list[str]]:
    """Of queries and keys; numbers where the axes are not known."""
    _, _, queries, keys = recorded.shape
    rows = recorded.query_axes[0].labels() if recorded.query_axes else list(map(str, range(queries)))
    return rows, recorded.key_axes[0].labels() if recorded.key_axes else list(map(str, range(keys)))


def _titled(recorded: RecordedMap, head: int | None) -> str:
    if recorded.shape[1] == 1:
        return recorded.address
    return f"{recorded.address}, {'mean of heads' if head is None else f'head {head}'}"


def _alignment(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    recorded = recording[tap].example(example)
    rows, columns = _labels(recorded)
    title = _titled(recorded, options.head)
    return draw_alignment(chosen(recorded, options.head), columns, rows, title=title, dark=options.dark)


def _words(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    recorded = recording[tap].example(example)
    rows, columns = _labels(recorded)
    return draw_words(
        chosen(recorded, options.head),
        rows,
        columns,
        query=None if options.query is None else position(recorded, options.query),
        roles=(recorded.queries, recorded.keys),
        title=_titled(recorded, options.head),
        dark=options.dark,
    )


def _heads(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_heads(recording, tap, example=example, dark=options.dark)


def _layers(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_layers(recording, taps=tap, example=example, dark=options.dark)


def _overlay(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_overlay(recording, tap, example=example, query=options.query, dark=options.dark)


def _strip(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_strip(recording, tap, example=example, head=options.head, dark=options.dark)


def _distance(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_distance(recording, taps=tap, dark=options.dark)


def _entropy(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_entropy(recording, taps=tap, dark=options.dark)


def _rollout(recording: Recording, tap: str, example: int, options: Viewing) -> Figure:
    return draw_rollout(recording, taps=tap, example=example, query=options.query, dark=options.dark)


VIEWS: dict[str, Drawing] = {
    "alignment": _alignment,
    "words": _words,
    "heads": _heads,
    "layers": _layers,
    "overlay": _overlay,
    "strip": _strip,
    "distance": _distance,
    "entropy": _entropy,
    "rollout": _rollout,
}
WHOLE = ("layers", "distance", "entropy", "rollout")
"""Views of all taps that match a pattern."""


def describe(recording: Recording) -> list[dict[str, Any]]:
    """What there is to look at, for programs."""
    return [
        {
            "address": address,
            "queries": recorded.queries,
            "keys": recorded.keys,
            "shape": list(recorded.shape),
            "form": recorded.relation.form,
            "bytes": recorded.relation.nbytes,
        }
        for address in recording
        for recorded in [recording[address]]
    ]
