"""Fonts that have the letters of a picture, and a sentence about those letters that none has.

Matplotlib shapes Arabic and turns Hebrew round by itself (it lays text out with HarfBuzz); what it cannot do is draw
letters that no installed font has. Such letters appear as boxes with their script's sign in them, so a picture that has
any says at its foot which font is missing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font

_BASE = "DejaVu Sans"
# Tried in this order for letters that the base font lacks; after them any installed font.
_PREFERRED = ("Noto Sans CJK", "Noto Sans", "Source Han Sans", "PingFang", "Hiragino", "Microsoft YaHei", "WenQuanYi")

# How letters are named in Unicode, what a reader calls them, and the free font that has them.
_CJK = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "BOPOMOFO": "Chinese"}


def fonts(texts: Iterable[str]) -> list[str]:
    """The base font, then as few installed fonts as have the letters that it lacks."""
    return list(_chosen(_letters(texts))[0])


def missing_font(texts: Iterable[str]) -> str:
    """Which letters no installed font has, and a font that has them; empty where all can be drawn."""
    scripts: dict[str, str] = {}
    for letter in sorted(_chosen(_letters(texts))[1]):
        name, font = _script(chr(letter))
        scripts.setdefault(name, font)
    if not scripts:
        return ""
    wanted = ", ".join(dict.fromkeys(scripts.values()))
    return f"Boxes stand for {_listed(list(scripts))}: no font on this machine has them. Install {wanted}."


def _letters(texts: Iterable[str]) -> frozenset[int]:
    """Code points that have a shape of their own: no joiners, no variation selectors, no spaces."""
    letters = {letter for text in texts for letter in text}
    shapeless = ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
    return frozenset(
        ord(letter)
        for letter in letters
        if unicodedata.category(letter) not in shapeless and not 0xFE00 <= ord(letter) <= 0xFE0F
    )


def _chosen(letters: frozenset[int]) -> tuple[tuple[str, ...], frozenset[int]]:
    """Families, and the letters that none has."""
    missing = letters - _letters_of(_family_file(_BASE))
    families = [_BASE]
    for family, path in _candidates() if missing else ():
        if found := missing & _letters_of(path):
            families.append(family)
            missing -= found
        if not missing:
            break
    return tuple(families), missing


def _candidates() -> tuple[tuple[str, str], ...]:
    # The Last Resort font has a box for every letter; matplotlib falls back to it by itself.
    upright = {
        (entry.name, entry.fname)
        for entry in fontManager.ttflist
        if entry.style == "normal" and entry.weight == 400 and not entry.name.startswith("Last Resort")
    }

    def rank(candidate: tuple[str, str]) -> tuple[int, str, str]:
        places = [place for place, name in enumerate(_PREFERRED) if candidate[0].startswith(name)]
        return min(places, default=len(_PREFERRED)), *candidate

    return tuple(sorted(upright, key=rank))


def _family_file(family: str) -> str:
    return fontManager.findfont(FontProperties(family=family))


@lru_cache(maxsize=4096)
def _letters_of(path: str) -> frozenset[int]:
    """Code points that a font can draw at any size; none for a file that is damaged or holds bitmaps only."""
    try:
        font = FT2Font(path)
        font.set_size(10.0, 72)
        return frozenset(font.get_charmap())
    except (RuntimeError, OSError):
        return frozenset()


def _script(letter: str) -> tuple[str, str]:
    """What a reader calls the letter's script, and a free font that has it."""
    category, first = unicodedata.category(letter), unicodedata.name(letter, "unknown").split()[0]
    if first in _CJK or unicodedata.east_asian_width(letter) == "F":
        return _CJK.get(first, "Chinese"), "Noto Sans CJK"
    if category[0] in "LM":
        return first.capitalize(), f"Noto Sans {first.capitalize()}"
    return ("emoji", "Noto Emoji") if category in ("So", "Sk") else ("some signs", "Noto Sans Symbols")


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
