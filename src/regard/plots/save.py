"""A figure as a file, in the format its ending names, the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import ConfigError
from regard.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Without dates, so that the same picture is the same file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "regard"},
    ".svg": {"Date": None, "Creator": "regard"},
    ".pdf": {"CreationDate": None, "Creator": "regard", "Producer": "regard"},
}


def save(figure: Figure, path: str | Path) -> Path:
    """Writes the figure whole or not at all."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in _METADATA:
        given = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise ConfigError(
            f"A picture is written as {', '.join(_METADATA)}, but {path.name!r} {given}. Choose one of these endings."
        )
    from regard.plots.sheet import FOOT  # loads matplotlib, which the page does without
    from regard.plots.style import styled

    # Text in an SVG stays text, drawn with the fonts of whoever reads it.
    feet = figure.findobj(lambda artist: artist.get_gid() == FOOT) if ending == ".svg" else []
    for foot in feet:
        foot.set_visible(False)
    try:
        with styled(), atomic_path(path) as temporary:
            figure.savefig(temporary, format=ending[1:], metadata=_METADATA[ending])
    finally:
        for foot in feet:
            foot.set_visible(True)
    return path
