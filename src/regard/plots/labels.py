"""Tokens as short labels: nothing invisible, nothing that breaks a line, nothing that runs across the picture."""

from __future__ import annotations

import unicodedata

# Joiners shape the letters around them (Persian, Hindi, emoji families) and stay.
_JOINERS = {"\u200c", "\u200d"}


def shown(token: str, width: int = 18) -> str:
    """The token as it is drawn: at most `width` columns wide, the rest behind an ellipsis.

    An empty token becomes ∅ and spaces alone become ␣; control characters get their picture (␊ for a new line), and
    marks that would turn the direction of the text around it are left out.
    """
    if not token.strip(" \u00a0"):
        return "␣" * min(len(token), width) or "∅"
    text = visible(token) or "∅"
    if sum(map(_columns, text)) <= width:
        return text
    kept, used = "", 1
    for letter in text:
        used += _columns(letter)
        if used > width:
            break
        kept += letter
    return kept.rstrip(" \u200d") + "…"


def visible(text: str) -> str:
    """The text with a picture for each control character, and without marks that turn the direction of a line."""
    return "".join(_visible(letter) for letter in text)


def _visible(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Cc":
        return chr(0x2400 + ord(letter)) if ord(letter) < 0x20 else "\ufffd"
    if category in ("Cs", "Zl", "Zp"):
        return "\ufffd"
    return "" if category == "Cf" and letter not in _JOINERS else letter


def _columns(letter: str) -> int:
    """Chinese, Japanese and Korean characters and emoji are twice as wide as letters; combining marks have no width."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
