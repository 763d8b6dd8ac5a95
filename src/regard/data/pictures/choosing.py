"""Which pictures are held out for validation, and which share of the training pictures is kept.

A picture is chosen by a hash of what it is, never by its place in a file or by a generator that others draw from, and
in every class alike. Held out are the pictures with the smallest hashes of each class: equal pictures of a class fall
on the same side, and the choice is the same whatever the seed. The share that is kept for training hangs on the seed,
and grows by addition: with the same seed a tenth is part of a quarter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from regard.core.errors import DataError


def hashes(marks: Sequence[bytes], salt: str) -> UInt64[np.ndarray, " pictures"]:
    """64 bits for each picture."""
    digests = b"".join(hashlib.blake2b(mark, digest_size=8, key=salt.encode()).digest() for mark in marks)
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def held_out(
    hashed: UInt64[np.ndarray, " pictures"], labels: Int64[np.ndarray, " pictures"], share: float, name: str
) -> Bool[np.ndarray, " pictures"]:
    """True for `share` of each class, and for at least one picture of it, and everything that is equal to those."""
    chosen = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        smallest = np.sort(hashed[own])
        limit = smallest[max(1, round(share * len(own))) - 1]
        chosen[own] = hashed[own] <= limit
        if chosen[own].all():
            raise DataError(
                f"The class {label} of {name} has {len(own)} pictures that differ in nothing, or just one: too few to "
                "hold some out. Give the class more pictures, or give the validation and test parts of their own."
            )
    return chosen


def kept(
    hashed: UInt64[np.ndarray, " pictures"], labels: Int64[np.ndarray, " pictures"], fraction: float
) -> Bool[np.ndarray, " pictures"]:
    """True for a `fraction` of each class, and for at least one picture of it."""
    chosen = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        order = own[np.argsort(hashed[own], kind="stable")]
        chosen[order[: max(1, round(fraction * len(own)))]] = True
    return chosen
