"""The browser's modules: as files for a server, or put together as one for a page and for a notebook.

A page that is opened by a double click cannot load modules from beside it, so they stand in it one after another, each
in a function of its own that returns what it exports.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

FILES = tuple(
    sorted(
        entry.name
        for entry in resources.files("regard.explorer").joinpath("browser").iterdir()
        if entry.name.endswith((".js", ".css"))
    )
)
"""All that a browser may ask for."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\s*\*?|class|const|let) (\w+))", re.MULTILINE)


@lru_cache(maxsize=64)
def read(name: str) -> str:
    """One of `FILES`."""
    return resources.files("regard.explorer").joinpath("browser", name).read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def joined(entry: str) -> str:
    """A module with all that it needs as one module text, which exports what `entry` exports."""
    order: list[str] = []
    _collect(entry, order)
    parts = [_wrapped(name) for name in order]
    exported = [match[2] for match in _EXPORT.finditer(read(entry))]
    names = ", ".join(exported)
    return "\n".join([*parts, f"const {{ {names} }} = {_variable(entry)};", f"export {{ {names} }};", ""])


def _collect(name: str, order: list[str]) -> None:
    """What is needed comes before what needs it; no module of ours needs itself."""
    if name in order:
        return
    for match in _IMPORT.finditer(read(name)):
        _collect(match[2], order)
    order.append(name)


def _wrapped(name: str) -> str:
    text = read(name)
    names = [match[2] for match in _EXPORT.finditer(text)]
    text = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(match[2])};\n", text)
    text = _EXPORT.sub(lambda match: match[1], text)
    return f"const {_variable(name)} = (() => {{\n{text}\nreturn {{ {', '.join(names)} }};\n}})();"


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"
