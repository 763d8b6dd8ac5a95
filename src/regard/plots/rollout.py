"""Where a whole model takes its answer from: attention rolled out through all layers, onto the picture or the words."""

from __future__ import annotations

from matplotlib.figure import Figure

from regard.core.axes import Axis, Grid
from regard.core.errors import ConfigError
from regard.plots.alignment import draw_alignment
from regard.plots.overlay import name_of_query, on_patches, outlined, picture_of
from regard.plots.panels import draw_panels
from regard.plots.view import place_of
from regard.recording import Recording


def draw_rollout(
    recording: Recording,
    *,
    example: int = 0,
    query: int | str | None = None,
    taps: str = "*",
    title: str | None = None,
    dark: bool = False,
) -> Figure:
    """How much of each input is in each position of the last layer (Abnar and Zuidema 2020; see `Recording.rollout`).

    On a picture it is the rollout of one position: `query`, else the class token, else the mean of all. Of words it is
    a matrix with a row for each word written, or for `query` alone.
    """
    first = recording.rollout(example=example, taps=taps, rows=slice(0, 1))
    queries, keys = first.query_axis, first.key_axis
    if query is None and isinstance(keys, Grid) and isinstance(queries, Grid) and queries.extras:
        query = 0  # the class token
    place = None if query is None else _place(queries, query, first.queries)
    rows = recording.rollout(example=example, taps=taps, rows=None if place is None else slice(place, place + 1))
    weights = rows.weights.numpy(force=True)
    through = "rollout through all layers" if taps == "*" else f"rollout through {taps}"
    if not isinstance(keys, Grid):
        names = queries.labels() if queries is not None else [str(number) for number in range(len(weights))]
        shown = names if place is None else [names[place] if queries is not None else str(place)]
        heading = title if title is not None else f"{through}: {first.keys} in {first.queries}"
        return draw_alignment(weights, first.labelled(), shown, title=heading, dark=dark)
    name = f"the mean of all {first.queries}" if place is None else name_of_query(queries, place)
    picture = picture_of(recording, example)
    return draw_panels(
        picture,
        {"rollout": on_patches(keys, weights.mean(axis=0))},
        title=title if title is not None else f"{through}: what {name} is made of",
        boxes=[] if place is None else outlined(queries, place, keys, picture),
        dark=dark,
    )


def _place(queries: Axis | None, query: int | str, role: str) -> int:
    if queries is not None:
        return place_of(str(query), queries.labels(), role)
    if not str(query).isdecimal():
        raise ConfigError(f"The positions of {role!r} have no labels; name {query!r} by its number.")
    return int(query)
