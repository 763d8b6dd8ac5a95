"""The colours of every picture and of the page, for light and for dark backgrounds.

The map of weights starts at the background itself, so that zero is visibly zero, and its lightness only rises or only
falls, so that it reads without any sense of colour. Outlines are orange, which no colour blindness confuses with blue.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Colours as `#rrggbb`."""

    background: str
    ink: str
    muted: str
    """Captions and ticks."""
    line: str
    """Edges of cells and frames."""
    outline: str
    """Links between words."""
    mark: str
    """Dots, and lines between words."""
    weights: tuple[str, ...]
    """Evenly spaced stops from weight zero to the largest."""
    signed: tuple[str, ...]
    """Evenly spaced stops for numbers of both signs, zero in the middle: orange below, blue above."""


LIGHT = Palette(
    background="#ffffff",
    ink="#1b2430",
    muted="#5f6b7a",
    line="#e2e7ee",
    outline="#d9480f",
    mark="#155b9c",
    weights=("#ffffff", "#d3e4f3", "#8fc0e0", "#3f8ac2", "#155b9c", "#0a2c61"),
    signed=("#8a2d04", "#d9480f", "#f5a573", "#ffffff", "#8fc0e0", "#155b9c", "#0a2c61"),
)
DARK = Palette(
    background="#12161c",
    ink="#e8ecf2",
    muted="#98a4b4",
    line="#29313d",
    outline="#ff9d3c",
    mark="#3f9ad3",
    weights=("#12161c", "#16365b", "#1f62a1", "#3f9ad3", "#9dd5ee", "#fcf7da"),
    signed=("#ffd9ae", "#ff9d3c", "#8f4a12", "#12161c", "#1f62a1", "#3f9ad3", "#c9ebf7"),
)


def palette(dark: bool) -> Palette:
    return DARK if dark else LIGHT


def ceiling(largest: float) -> float:
    """The weight that gets the last colour: a round number not below the largest weight of a picture."""
    for value in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0):
        if 0 < largest <= value + 1e-6:
            return value
    return largest if largest > 0 else 1.0
