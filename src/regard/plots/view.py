"""What a picture needs of a recording: the weights of one tap for one example, with a label for each position."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.core.errors import ConfigError, RecordingError, nearest
from regard.recording import RecordedMap, Recording


@dataclass(frozen=True, eq=False)
class View:
    """One tap's map for one example."""

    address: str
    queries: str
    keys: str
    rows: list[str]
    """A label for each query."""
    columns: list[str]
    """A label for each key."""
    weights: Float[np.ndarray, "heads rows columns"]


def matching(recording: Recording, taps: str) -> list[str]:
    """The addresses that fit the pattern."""
    found = [address for address in recording if fnmatch.fnmatchcase(address, taps)]
    if not found:
        known = ", ".join(recording) or "nothing"
        raise ConfigError(f"No recorded tap matches {taps!r}, so there is nothing to draw. Recorded: {known}.")
    return found


def size(recorded: RecordedMap, example: int) -> tuple[int, int, int]:
    """Heads, queries and keys of one example, without padding."""
    one = recorded.example(example)
    _, heads, queries, keys = one.shape
    return (
        heads,
        len(one.query_axes[0]) if one.query_axes else queries,
        len(one.key_axes[0]) if one.key_axes else keys,
    )


def view(recording: Recording, address: str, example: int, limit: int, kind: str) -> View:
    """Reads one map; more than `limit` positions a side are refused before anything is computed."""
    recorded = recording[address]
    _, num_queries, num_keys = size(recorded, example)
    if max(num_queries, num_keys) > limit:
        raise ConfigError(
            f"The map of {address} is {num_queries:,} by {num_keys:,} positions; {kind} shows at most {limit} a side. "
            f"Record a shorter input, or save the recording as a .regard file and read the rows you want with "
            f"recording[{address!r}].weights(example={example}, rows=...)."
        )
    weights = recorded.weights(example=example).numpy(force=True)
    if not np.isfinite(weights).all():
        raise RecordingError(f"The weights of {address} are not all finite, so they cannot be drawn.")
    query_axes, key_axes = recorded.query_axes, recorded.key_axes
    return View(
        address,
        recorded.queries,
        recorded.keys,
        query_axes[example].labels() if query_axes else [str(position) for position in range(num_queries)],
        key_axes[example].labels() if key_axes else [str(position) for position in range(num_keys)],
        weights,
    )


def chosen(recorded: RecordedMap, head: int | None) -> Float[np.ndarray, "rows columns"]:
    """One head of the map of one example, or the mean of all."""
    weights = recorded.weights(example=0) if head is None else recorded.weights(example=0, head=head)[None]
    if not weights.isfinite().all():
        raise RecordingError(f"The weights of {recorded.address} are not all finite, so they cannot be drawn.")
    return weights.mean(dim=0).numpy(force=True)


def position(recorded: RecordedMap, query: int | str) -> int:
    """The place of a query given by its number (negative: from the end) or by its label."""
    labels = recorded.query_axes[0].labels() if recorded.query_axes else []
    if isinstance(query, int) or not labels:
        count = len(labels) or recorded.shape[2]
        if isinstance(query, int) or query.removeprefix("-").isdecimal():
            if not -count <= int(query) < count:
                raise RecordingError(f"There is no query {query} in {recorded.address}; it has {count}.")
            return int(query) % count
    return place_of(str(query), labels, recorded.address)


def place_of(query: str, labels: Sequence[str], where: str) -> int:
    """The place of a label; where no label is so, the place of that number."""
    places = [place for place, label in enumerate(labels) if label == query]
    if len(places) == 1:
        return places[0]
    if places:
        raise ConfigError(
            f"{query!r} stands at the positions {', '.join(map(str, places))} of {where}; name one by its number."
        )
    if query.removeprefix("-").isdecimal():
        if not -len(labels) <= int(query) < len(labels):
            raise RecordingError(f"There is no query {query} in {where}; it has {len(labels)}.")
        return int(query) % len(labels)
    close = nearest(query, labels)
    meant = f" Did you mean {close!r}?" if close else ""
    known = f"{', '.join(labels[:20])}{' ...' if len(labels) > 20 else ''}" if labels else "positions without a label"
    raise ConfigError(f"There is no {query!r} in {where}.{meant} There are: {known}.")
