"""One number a head, layer by layer: how far heads look (Dosovitskiy et al. 2021, figure 7) and how spread they look.

Taps of one kind, such as `encoder.*.attention`, share a panel; their layers stand from left to right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.labels import shown
from regard.plots.matrix import as_array
from regard.plots.palette import Palette, palette
from regard.plots.sheet import inch_axes, new_sheet
from regard.plots.spread import Statistic, mean_by_head, uniform
from regard.plots.style import NAME_SIZE, styled, text_size
from regard.plots.view import matching
from regard.recording import Recording

_HEIGHT = 3.6
_STEP, _NARROWEST, _WIDEST = 0.5, 2.6, 9.0  # inches from layer to layer, and of a panel
_SCALE_WIDTH, _NAMES_HEIGHT = 0.85, 0.62
_SPACE = 0.45
_ALIKE = "if it looked everywhere alike"


def draw_distance(recording: Recording, *, taps: str = "*", title: str | None = None, dark: bool = False) -> Figure:
    """How far each head looks, on average over all queries and examples, in the unit of its axis.

    Taps that match are left out where their axes have no distance, such as words from patches. The dashed line is what
    a head would have that looks everywhere alike.
    """
    found = _means(recording, taps, "distance")
    if not found:
        raise ConfigError(
            f"No tap that matches {taps!r} looks along one axis, or the axes are not labelled, so there are no "
            f"distances to draw. Draw the entropy instead."
        )
    units = {recording[address].unit for address in found}
    if len(units) > 1:
        raise ConfigError(
            f"The taps that match {taps!r} measure in {' and in '.join(sorted(units))}, too much for one picture. "
            f"Choose fewer with a pattern such as taps={next(iter(found))!r}."
        )
    return _drawn(
        recording, found, "distance", f"mean distance, {units.pop()}", title or "How far each head looks", dark
    )


def draw_entropy(recording: Recording, *, taps: str = "*", title: str | None = None, dark: bool = False) -> Figure:
    """How spread the weights of each head are, in nats, on average over all queries and examples.

    The dashed line is what a head would have that looks everywhere alike.
    """
    found = _means(recording, taps, "entropy")
    return _drawn(
        recording, found, "entropy", "mean entropy, nats", title or "How spread each head's attention is", dark
    )


def _means(recording: Recording, taps: str, statistic: Statistic) -> dict[str, Tensor]:
    found = {address: mean_by_head(recording[address], statistic) for address in matching(recording, taps)}
    return {address: means for address, means in found.items() if means is not None}


def _drawn(
    recording: Recording, found: Mapping[str, Tensor], statistic: Statistic, quantity: str, title: str, dark: bool
) -> Figure:
    everywhere = {}
    for address in found:
        alike = uniform(recording[address])
        mean = mean_by_head(alike, statistic) if alike is not None else None
        if mean is not None:
            everywhere[address] = float(mean[0])
    return draw_depth(found, quantity, everywhere=everywhere, title=title, dark=dark)


def draw_depth(
    values: Mapping[str, Sequence[float] | Float[np.ndarray | Tensor, "heads"]],
    quantity: str,
    *,
    everywhere: Mapping[str, float] | None = None,
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """For each address a dot a head, in panels by kind of address; `everywhere` (what a head
    has that looks everywhere alike) is drawn as a dashed line beside them."""
    table = {address: _finite(address, heads) for address, heads in values.items()}
    if not table:
        raise ConfigError("There is nothing to draw: no values were given.")
    references = {address: float(value) for address, value in (everywhere or {}).items() if math.isfinite(float(value))}
    colours = palette(dark)
    kinds = _kinds(table)
    widths = [min(_WIDEST, max(_NARROWEST, _STEP * (len(layers) + 1))) for layers in kinds.values()]
    highest = max([*(float(heads.max()) for heads in table.values()), *references.values(), 0.0]) or 1.0
    texts = [quantity, title or "", *kinds]
    with styled(texts):
        key = 1.5 + text_size(_ALIKE, NAME_SIZE)[0] if references else 0.0
        width = _SCALE_WIDTH + max(sum(widths) + _SPACE * (len(widths) - 1), key)
        names = 0.3 if len(kinds) > 1 else 0.1
        sheet = new_sheet(width, names + _HEIGHT + _NAMES_HEIGHT + 0.32, title or "", colours, texts)
        left, top = sheet.left + _SCALE_WIDTH, sheet.top + names
        for (kind, layers), panel in zip(kinds.items(), widths, strict=True):
            axes = inch_axes(sheet.figure, left, top, panel, _HEIGHT)
            _finish(axes, colours, highest)
            for place, address in enumerate(layers.values()):
                heads = table[address]
                axes.scatter(
                    np.full(len(heads), place), heads, s=54, color=colours.mark, alpha=0.75,
                    edgecolors=colours.background, linewidths=0.8, zorder=3, clip_on=False,
                )  # fmt: skip
                if address in references:
                    axes.plot([place - 0.38, place + 0.38], [references[address]] * 2, color=colours.outline,
                              linewidth=2.0, linestyle=(0, (2, 1)), zorder=2)  # fmt: skip
            axes.set_xlim(-0.6, len(layers) - 0.4)
            every = max(1, math.ceil(len(layers) * 0.42 / panel))
            places = range(0, len(layers), every)
            axes.set_xticks(list(places), [list(layers)[place] for place in places])
            axes.set_xlabel("layer", size=NAME_SIZE, color=colours.muted)
            if len(kinds) > 1:
                sheet.axes.text(left + panel / 2, top - 0.1, shown(kind, 40), size=NAME_SIZE, color=colours.ink,
                                ha="center", va="baseline")  # fmt: skip
            if left > sheet.left + _SCALE_WIDTH:
                axes.tick_params(labelleft=False)
            else:
                axes.set_ylabel(quantity, size=NAME_SIZE, color=colours.muted)
            left += panel + _SPACE
        _legend(sheet.axes, sheet.left + _SCALE_WIDTH, top + _HEIGHT + _NAMES_HEIGHT + 0.14, bool(references), colours)
    return sheet.figure


def _finish(axes: Axes, colours: Palette, highest: float) -> None:
    """Nothing but two axes and faint lines to read heights off; heights begin at zero."""
    axes.set_facecolor(colours.background)
    axes.set_ylim(0.0, highest * 1.06)
    axes.grid(axis="y", color=colours.line, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours.muted)
    axes.tick_params(labelsize=NAME_SIZE, color=colours.muted, labelcolor=colours.muted, length=3)


def _legend(page: Axes, left: float, middle: float, with_uniform: bool, colours: Palette) -> None:
    page.scatter([left + 0.06], [middle], s=54, color=colours.mark, alpha=0.75)
    page.text(left + 0.2, middle, "a head", size=NAME_SIZE, color=colours.muted, va="center_baseline")
    if with_uniform:
        x = left + 1.0
        page.plot([x, x + 0.4], [middle] * 2, color=colours.outline, linewidth=2.0, linestyle=(0, (2, 1)))
        page.text(x + 0.5, middle, _ALIKE, size=NAME_SIZE, color=colours.muted, va="center_baseline")


def _kinds(addresses: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """For each kind of address its layers: what their numbers are, and the whole address."""
    kinds: dict[str, dict[str, str]] = {}
    for address in addresses:
        numbers = re.findall(r"\d+", address)
        kinds.setdefault(re.sub(r"\d+", "*", address), {})[".".join(numbers) or "1"] = address
    return kinds


def _finite(address: str, heads: Sequence[float] | np.ndarray | Tensor) -> Float[np.ndarray, "heads"]:
    values = as_array(heads)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ConfigError(f"The values of {address} must be one finite number for each head.")
    return values
