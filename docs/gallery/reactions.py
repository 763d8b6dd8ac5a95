"""Chemical reactions with known correspondence of atoms, for whoever wants to know which head has learned it.

In `MAPPED`, an atom of the product came from the atom on the left with the same number; atoms that no experiment could
tell apart (both sides of a ring, the methyls of a tert-butyl) have the same number. The model sees none of the numbers.
All reactions are textbook ones, written for this purpose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAPPED = {
    "acyl chloride + aniline": (
        "[C:1][C:2](=[O:3])Cl.[N:4][c:5]1[c:6][c:7][c:8][c:7][c:6]1>>"
        "[C:1][C:2](=[O:3])[N:4][c:5]1[c:6][c:7][c:8][c:7][c:6]1"
    ),
    "esterification": (
        "[C:1][C:2](=[O:3])O.[O:4][C:5][c:6]1[c:7][c:8][c:9][c:8][c:7]1>>"
        "[C:1][C:2](=[O:3])[O:4][C:5][c:6]1[c:7][c:8][c:9][c:8][c:7]1"
    ),
    "Suzuki coupling": (
        "OB(O)[c:1]1[c:2][c:3][c:4][c:3][c:2]1.[C:9][c:8]1[c:7][c:6][c:5](Br)[c:6][c:7]1>>"
        "[C:9][c:8]1[c:7][c:6][c:5](-[c:1]2[c:2][c:3][c:4][c:3][c:2]2)[c:6][c:7]1"
    ),
    "nitro reduction": (
        "[C:7][O:6][c:5]1[c:4][c:3][c:2]([N+:1](=O)[O-])[c:3][c:4]1>>[C:7][O:6][c:5]1[c:4][c:3][c:2]([N:1])[c:3][c:4]1"
    ),
    "Boc protection": (
        "[C:1][C:2]([C:1])([C:1])[O:3][C:4](=[O:5])O[C:4](=[O:5])[O:3][C:2]([C:1])([C:1])[C:1]."
        "[N:6][C:7][c:8]1[c:9][c:10][c:11][c:10][c:9]1>>"
        "[C:1][C:2]([C:1])([C:1])[O:3][C:4](=[O:5])[N:6][C:7][c:8]1[c:9][c:10][c:11][c:10][c:9]1"
    ),
    "Williamson ether": (
        "Br[C:6][c:7]1[c:8][c:9][c:10][c:9][c:8]1.[O:1][c:2]1[c:3][c:4][c:5][c:4][c:3]1>>"
        "[c:10]1[c:9][c:8][c:7]([C:6][O:1][c:2]2[c:3][c:4][c:5][c:4][c:3]2)[c:8][c:9]1"
    ),
    "reductive amination": (
        "O=[C:1][c:2]1[c:3][c:4][c:5][c:4][c:3]1.[C:6]1[C:6][C:7][N:8][C:7]1>>"
        "[c:5]1[c:4][c:3][c:2]([C:1][N:8]2[C:7][C:6][C:6][C:7]2)[c:3][c:4]1"
    ),
    "aromatic substitution": (
        "[O:2]=[N+:1]([O-:2])[c:3]1[c:4][c:5][c:6](F)[c:5][c:4]1.[C:7]1[C:8][O:9][C:8][C:7][N:10]1>>"
        "[O:2]=[N+:1]([O-:2])[c:3]1[c:4][c:5][c:6]([N:10]2[C:7][C:8][O:9][C:8][C:7]2)[c:5][c:4]1"
    ),
    "sulfonamide": (
        "[C:8][C:9][C:10][C:11][N:12].[C:1][c:2]1[c:3][c:4][c:5]([S:6](=[O:7])(=[O:7])Cl)[c:4][c:3]1>>"
        "[C:8][C:9][C:10][C:11][N:12][S:6](=[O:7])(=[O:7])[c:5]1[c:4][c:3][c:2]([C:1])[c:3][c:4]1"
    ),
    "ketone reduction": (
        "[C:1][C:2](=[O:3])[c:4]1[c:5][c:6][c:7][c:6][c:5]1>>[C:1][C:2]([O:3])[c:4]1[c:5][c:6][c:7][c:6][c:5]1"
    ),
    "urea": (
        "[C:8][N:9][C:8].[O:1]=[C:2]=[N:3][c:4]1[c:5][c:6][c:7][c:6][c:5]1>>"
        "[C:8][N:9]([C:8])[C:2](=[O:1])[N:3][c:4]1[c:5][c:6][c:7][c:6][c:5]1"
    ),
    "Sonogashira coupling": (
        "[C:5]#[C:6][c:7]1[c:8][c:9][c:10][c:9][c:8]1.[C:11][c:4]1[c:3][c:2][c:1](I)[c:2][c:3]1>>"
        "[C:11][c:4]1[c:3][c:2][c:1]([C:5]#[C:6][c:7]2[c:8][c:9][c:10][c:9][c:8]2)[c:2][c:3]1"
    ),
    "mesylation": (
        "[C:1][S:2](=[O:3])(=[O:3])Cl.[O:4][C:5][C:6][C:7]1[C:8][C:9][C:10][C:9][C:8]1>>"
        "[C:1][S:2](=[O:3])(=[O:3])[O:4][C:5][C:6][C:7]1[C:8][C:9][C:10][C:9][C:8]1"
    ),
    "amide coupling": (
        "[C:1][C:2]([C:1])[C:3](=[O:4])O.[N:5][c:6]1[c:7][c:8][c:9]([Cl:10])[c:8][c:7]1>>"
        "[C:1][C:2]([C:1])[C:3](=[O:4])[N:5][c:6]1[c:7][c:8][c:9]([Cl:10])[c:8][c:7]1"
    ),
    "epoxide opening": (
        "[C:8][N:9].[c:1]1[c:2][c:3][c:4]([C:5]2[C:6][O:7]2)[c:3][c:2]1>>"
        "[C:8][N:9][C:6][C:5]([O:7])[c:4]1[c:3][c:2][c:1][c:2][c:3]1"
    ),
    "Boc removal": ("CC(C)(C)OC(=O)[N:1]1[C:2][C:3][O:4][C:3][C:2]1.O=C(O)C(F)(F)F>>[C:2]1[C:3][O:4][C:3][C:2][N:1]1"),
}

_TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
_NUMBERED = re.compile(r"\[([^:\]]+):(\d+)\]")
_NO_BRACKETS = {"B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I", "b", "c", "n", "o", "p", "s"}


@dataclass(frozen=True)
class Reaction:
    """The tokens that a model sees, and what is known about them."""

    tokens: tuple[str, ...]
    numbers: tuple[int | None, ...]
    """The number of each token that is an atom which has one."""

    @property
    def arrow(self) -> int:
        return self.tokens.index(">>")

    @property
    def products(self) -> list[int]:
        """Where the atoms of the product are."""
        return [place for place in range(self.arrow, len(self.tokens)) if self.numbers[place] is not None]

    @property
    def reactants(self) -> list[int]:
        """Where the atoms on the left are, those that leave included."""
        return [place for place in range(self.arrow) if _is_atom(self.tokens[place])]


def read(mapped: str) -> Reaction:
    """A reaction between [CLS] and [SEP], as both models were trained with."""
    tokens: list[str] = ["[CLS]"]
    numbers: list[int | None] = [None]
    for token in _TOKEN.findall(mapped):
        numbered = _NUMBERED.fullmatch(token)
        if numbered is None:
            tokens.append(token)
            numbers.append(None)
            continue
        symbol = numbered[1]
        tokens.append(symbol if symbol in _NO_BRACKETS else f"[{symbol}]")
        numbers.append(int(numbered[2]))
    return Reaction((*tokens, "[SEP]"), (*numbers, None))


def _is_atom(token: str) -> bool:
    return token in _NO_BRACKETS or (token.startswith("[") and token not in {"[CLS]", "[SEP]"})
