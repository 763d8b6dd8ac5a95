"""Where a whole model takes its answer from: attention rolled out through all layers, on the picture or on the words."""

from __future__ import annotations

from matplotlib.figure import Figure

from regard.core.axes import Grid
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
    whole = recording.rollout(example=example, taps=taps)
    queries, keys = whole.query_axis, whole.key_axis
    rows = whole.weights.numpy(force=True)
    row_names = queries.labels() if queries is not None else [str(place) for place in range(len(rows))]
    if query is None and isinstance(keys, Grid) and isinstance(queries, Grid) and queries.extras:
        query = 0
    place = None if query is None else place_of(str(query), row_names, whole.queries)
    through = "rollout through all layers" if taps == "*" else f"rollout through {taps}"
    if not isinstance(keys, Grid):
        chosen = slice(None) if place is None else slice(place, place + 1)
        heading = title if title is not None else f"{through}: {whole.keys} in {whole.queries}"
        return draw_alignment(rows[chosen], whole.labelled(), row_names[chosen], title=heading, dark=dark)
    name = f"the mean of all {whole.queries}" if place is None else name_of_query(queries, place)
    picture = picture_of(recording, example)
    return draw_panels(
        picture,
        {"rollout": on_patches(keys, rows.mean(axis=0) if place is None else rows[place])},
        title=title if title is not None else f"{through}: what {name} is made of",
        boxes=[] if place is None else outlined(queries, place, keys, picture),
        dark=dark,
    )
