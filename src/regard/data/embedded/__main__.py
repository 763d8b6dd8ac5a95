"""Prints or writes the embedded corpus: `python -m regard.data.embedded --num 20 --split train --seed 1`.

Without `--out` a line is "English ||| French ||| 0-0 1-1 ..." (the links in Pharaoh order, source-target). With
`--out PREFIX` the files PREFIX.en, PREFIX.fr and PREFIX.align are written, a sentence a line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from regard.core.errors import DataError, RegardError
from regard.core.files import write_text
from regard.data.embedded.generating import Split, generate
from regard.data.embedded.pairs import AlignedPair


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m regard.data.embedded", description="A generated English-French corpus with word alignments."
    )
    parser.add_argument("--num", type=int, default=20, help="how many sentence pairs (default: 20)")
    parser.add_argument("--split", choices=get_args(Split), default="train")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", metavar="PREFIX", help="write PREFIX.en, PREFIX.fr and PREFIX.align instead")
    options = parser.parse_args(arguments)
    try:
        pairs = generate(options.num, seed=options.seed, split=options.split)
        if options.out:
            write(pairs, options.out)
        else:
            for pair in pairs:
                print(pair.source_text, pair.target_text, pair.pharaoh(), sep=" ||| ")
    except RegardError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def write(pairs: Sequence[AlignedPair], prefix: str) -> None:
    """The three parallel files."""
    columns = {
        "en": [pair.source_text for pair in pairs],
        "fr": [pair.target_text for pair in pairs],
        "align": [pair.pharaoh() for pair in pairs],
    }
    for suffix, lines in columns.items():
        path = Path(f"{prefix}.{suffix}")
        try:
            write_text(path, "\n".join(lines) + "\n")
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror}. Choose another --out.") from error


if __name__ == "__main__":
    sys.exit(main())
