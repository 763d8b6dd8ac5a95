"""A verdict as a picture: the curves of a map between those of random orders, and its controls."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.plots.palette import Palette, palette
from regard.plots.style import MARGIN, TITLE_SIZE, inch_axes, new_figure, sheet, styled, text_size, wrapped
from regard.recording.verdict import Curves, Verdict

_PANEL = 3.5, 2.6
_AXIS_SPACE = 0.55
_GAP = 0.75
# Told apart by their strokes as well, so that no colour has to be.
_STROKES = ("--", ":", "-.")


def draw_verdict(verdict: Verdict, *, title: str | None = None, dark: bool = False) -> Figure:
    """Deletion on the left, insertion on the right, the verdict in words below."""
    colours = palette(dark)
    heading = title if title is not None else _heading(verdict)
    note = f"{verdict.sentence} Of {len(verdict.random)} random orders, {_beaten(verdict)}."
    with styled([heading, note]):
        width = 2 * (MARGIN + _AXIS_SPACE + _PANEL[0]) + _GAP - _AXIS_SPACE
        lines = wrapped(heading, TITLE_SIZE, width - 2 * MARGIN)
        below = wrapped(note, 10.0, width - 2 * MARGIN, lines=4)
        top = MARGIN + text_size(lines, TITLE_SIZE)[1] + 0.45
        bottom = top + _PANEL[1] + _AXIS_SPACE
        figure = new_figure(width, bottom + text_size(below, 10.0)[1] + 0.4 + MARGIN, colours)
        page = sheet(figure)
        page.text(MARGIN, MARGIN, lines, size=TITLE_SIZE, color=colours.ink, va="top")
        shares = 100 * verdict.curves.shares
        chance = verdict.random
        # Whoever puts in what another takes away, in the same order, walks that one's curve backwards.
        panels = (
            ("Taken away, most attended first", "deletion", chance),
            ("Put in, most attended first", "insertion", chance[:, ::-1]),
        )
        for place, (name, kind, band) in enumerate(panels):
            left = MARGIN + _AXIS_SPACE + place * (_PANEL[0] + _GAP)
            axes = inch_axes(figure, left, top, *_PANEL)
            _draw_panel(axes, shares, verdict, kind, band, colours)
            axes.set_title(name, size=11, color=colours.ink, loc="left")
            axes.set_xlabel("per cent of the input", size=9, color=colours.muted)
            if place == 0:
                axes.set_ylabel("score of the answer", size=9, color=colours.muted)
                handles, labels = axes.get_legend_handles_labels()
        legend = figure.legend(
            handles,
            labels,
            loc="upper left",
            ncols=len(labels),
            frameon=False,
            fontsize=9,
            labelcolor=colours.ink,
            bbox_to_anchor=(MARGIN / width, 1 - (bottom - 0.02) / figure.get_size_inches()[1]),
            borderaxespad=0.0,
        )
        legend.set_zorder(3)
        page.text(MARGIN, bottom + 0.35, below, size=10, color=colours.ink, va="top")
    return figure


def _draw_panel(
    axes: Axes,
    shares: Float[np.ndarray, "points"],
    verdict: Verdict,
    kind: str,
    band: Float[np.ndarray, "orders points"],
    colours: Palette,
) -> None:
    low, high = np.quantile(band, [0.025, 0.975], axis=0)
    axes.set_axis_on()
    axes.set_facecolor(colours.background)
    axes.fill_between(shares, low, high, color=colours.weights[1], linewidth=0, label="95 % of random orders")
    axes.plot(shares, band.mean(axis=0), color=colours.weights[3], linewidth=1.0, label="their mean")
    for stroke, (name, curves) in zip(_STROKES, verdict.controls.items(), strict=False):
        axes.plot(shares, _curve(curves, kind), stroke, color=colours.muted, linewidth=1.3, label=name)
    axes.plot(shares, _curve(verdict.curves, kind), color=colours.outline, linewidth=2.2, label="the map")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=9, color=colours.muted, labelcolor=colours.muted, length=3)
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
