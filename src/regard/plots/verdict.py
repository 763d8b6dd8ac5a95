"""A verdict as a picture: the curves of a map between those of random orders, and its controls."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.plots.palette import Palette, palette
from regard.plots.sheet import inch_axes, new_sheet
from regard.plots.style import NAME_SIZE, styled, text_size, wrapped
from regard.recording.verdict import Curves, Verdict

# In inches.
_PANEL = 3.6, 2.6
_AXIS_SPACE = 0.6
_GAP = 0.75
_TITLE_SPACE = 0.3
_LEGEND_SPACE = 0.35
# Told apart by their strokes as well, so that no colour has to be.
_STROKES = ("--", ":", "-.")


def draw_verdict(verdict: Verdict, *, title: str | None = None, dark: bool = False) -> Figure:
    """Deletion on the left, insertion on the right, the verdict in words below."""
    colours = palette(dark)
    heading = title if title is not None else _heading(verdict)
    note = f"{verdict.sentence} Of {len(verdict.random)} random orders, {_beaten(verdict)}."
    shares, chance = 100 * verdict.curves.shares, verdict.random
    # Whoever puts in what another takes away, in the same order, walks that one's curve backwards.
    panels = (
        ("Taken away, most attended first", "deletion", chance),
        ("Put in, most attended first", "insertion", chance[:, ::-1]),
    )
    with styled([heading, note]):
        width = 2 * (_AXIS_SPACE + _PANEL[0]) + _GAP - _AXIS_SPACE + 0.15
        below = wrapped(note, NAME_SIZE, width, lines=4)
        legend_top = _TITLE_SPACE + _PANEL[1] + _AXIS_SPACE
        height = legend_top + _LEGEND_SPACE + text_size(below, NAME_SIZE)[1]
        sheet = new_sheet(width, height, heading, colours, [note])
        for place, (name, kind, band) in enumerate(panels):
            left = sheet.left + _AXIS_SPACE + place * (_PANEL[0] + _GAP)
            axes = inch_axes(sheet.figure, left, sheet.top + _TITLE_SPACE, *_PANEL)
            _draw_panel(axes, shares, verdict, kind, band, colours)
            axes.set_title(name, size=NAME_SIZE, color=colours.ink, loc="left")
            axes.set_xlabel("per cent of the input", size=10, color=colours.muted)
            if place == 0:
                axes.set_ylabel("score of the answer", size=10, color=colours.muted)
        handles, labels = axes.get_legend_handles_labels()
        whole_width, whole_height = sheet.figure.get_size_inches()
        sheet.figure.legend(
            handles,
            labels,
            loc="upper left",
            ncols=len(labels),
            frameon=False,
            fontsize=10,
            labelcolor=colours.ink,
            bbox_to_anchor=(sheet.left / whole_width, 1 - (sheet.top + legend_top) / whole_height),
            borderaxespad=0.0,
        )
        line = sheet.top + legend_top + _LEGEND_SPACE
        sheet.axes.text(sheet.left, line, below, size=NAME_SIZE, color=colours.ink, ha="left", va="top")
    return sheet.figure


def _draw_panel(
    axes: Axes,
    shares: Float[np.ndarray, "points"],
    verdict: Verdict,
    kind: str,
    band: Float[np.ndarray, "orders points"],
    colours: Palette,
) -> None:
    low, high = np.quantile(band, [0.025, 0.975], axis=0)
    axes.set_facecolor(colours.background)
    axes.fill_between(shares, low, high, color=colours.weights[1], linewidth=0, label="95 % of random orders")
    axes.plot(shares, band.mean(axis=0), color=colours.weights[3], linewidth=1.0, label="their mean")
    for stroke, (name, curves) in zip(_STROKES, verdict.controls.items(), strict=False):
        axes.plot(shares, _curve(curves, kind), stroke, color=colours.muted, linewidth=1.3, label=name)
    axes.plot(shares, _curve(verdict.curves, kind), color=colours.outline, linewidth=2.2, label="the map")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=10, color=colours.muted, labelcolor=colours.muted, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.muted)


def _curve(curves: Curves, kind: str) -> Float[np.ndarray, "points"]:
    return curves.deletion if kind == "deletion" else curves.insertion


def _heading(verdict: Verdict) -> str:
    outputs = verdict.outputs
    where = outputs.get("tap", "the map")
    if "translation" in outputs:
        return f"{outputs['source']} → {outputs['translation']} ({where})"
    if "class" in outputs:
        return f"{outputs['class']} ({100 * outputs['probability']:.0f} %), {where}"
    return str(where)


def _beaten(verdict: Verdict) -> str:
    areas, curves = verdict.random_areas, verdict.curves
    sooner = int((areas <= curves.deletion_area).sum())
    better = int((areas >= curves.insertion_area).sum())
    return f"{sooner} lose the score as soon and {better} win it as soon"
