"""A sentence, its translation and the gold word alignment between them.

Links follow Och and Ney (2003): *sure* links are what any annotator would draw, *possible* links are those
that a model is not blamed for (an inserted article, "does" beside "ne"). Every sure link is also possible,
which is what the alignment error rate expects. Indices are (source, target), counted from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

Links = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AlignedPair:
    source: tuple[str, ...]
    """English tokens."""
    target: tuple[str, ...]
    """French tokens; a word with an apostrophe is split after it: "L' accord"."""
    sure: Links
    possible: Links

    @property
    def source_text(self) -> str:
        return " ".join(self.source)

    @property
    def target_text(self) -> str:
        return " ".join(self.target)

    def pharaoh(self) -> str:
        """The sure links as "0-0 1-2 ...", in the order of the source."""
        return " ".join(f"{source}-{target}" for source, target in sorted(self.sure))
