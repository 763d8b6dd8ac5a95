"""Pictures one after another as a GIF or an MP4: how attention appears, sharpens or dies while a model learns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib import animation, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from regard.core.errors import ConfigError
from regard.core.files import atomic_path
from regard.plots.heads import draw_heads
from regard.recording import Recording

ENDINGS = (".gif", ".mp4")
MAX_FRAMES = 1000

_PIXELS_PER_INCH = 100
_LAST = 4  # the last picture stays this many times as long as the others


def write_film(path: str | Path, figures: Iterable[Figure], *, seconds: float = 0.4) -> Path:
    """Writes the film whole or not at all; each figure is shown for that long, and the film begins again at its end.

    Figures of different sizes are laid on the background of the largest. An MP4 needs ffmpeg.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(f"A film is written as {' or '.join(ENDINGS)}, but its name is {path.name!r}.")
    if not 0.02 <= seconds <= 60:
        raise ConfigError(f"A picture of a film is shown for 0.02 to 60 seconds, not for {seconds}.")
    if ending == ".mp4" and not animation.FFMpegWriter.isAvailable():
        raise ConfigError("An .mp4 needs ffmpeg, and there is none on this machine. Install it, or write a .gif.")
    frames = _frames(figures)
    with atomic_path(path) as temporary:
        (_write_gif if ending == ".gif" else _write_mp4)(temporary, frames, seconds)
    return path


def draw_training(
    steps: Iterable[tuple[int, Recording]], address: str, *, example: int = 0, dark: bool = False
) -> Iterator[Figure]:
    """For each step of a training the heads of one tap, all on one scale and each with its step."""
    recordings = list(steps)
    most = max((float(recording[address].weights(example=example).max()) for _, recording in recordings), default=0.0)
    for step, recording in recordings:
        title = f"{address} after {step:,} steps"
        yield draw_heads(recording, address, example=example, title=title, largest=most, dark=dark)


def _frames(figures: Iterable[Figure]) -> list[UInt8[np.ndarray, "height width 3"]]:
    """All pictures in pixels, of one size with even sides (what video coders ask for)."""
    drawn: list[UInt8[np.ndarray, "_ _ 3"]] = []
    backgrounds = []
    for figure in figures:
        if len(drawn) == MAX_FRAMES:
            raise ConfigError(f"A film has at most {MAX_FRAMES} pictures; leave some out, such as every second one.")
        figure.set_dpi(_PIXELS_PER_INCH)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
        backgrounds.append(np.round(255 * np.array(to_rgb(figure.get_facecolor()))).astype(np.uint8))
    if not drawn:
        raise ConfigError("A film needs at least one picture; none was given.")
    height, width = (2 * -(-max(one.shape[axis] for one in drawn) // 2) for axis in (0, 1))
    frames = []
    for one, background in zip(drawn, backgrounds, strict=True):
        frame = np.broadcast_to(background, (height, width, 3)).copy()
        frame[: one.shape[0], : one.shape[1]] = one
        frames.append(frame)
    return frames


def _write_gif(path: Path, frames: Sequence[UInt8[np.ndarray, "height width 3"]], seconds: float) -> None:
    # One palette for all, from all, so that a colour means the same weight throughout.
    sample = Image.fromarray(np.concatenate([frame[::3, ::3] for frame in frames[:: max(1, len(frames) // 16)]]))
    colours = sample.quantize(256, method=Image.Quantize.MEDIANCUT)
    first, *others = [Image.fromarray(frame).quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    times = [round(1000 * seconds)] * len(others) + [round(1000 * seconds * _LAST)]
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, optimize=False)


def _write_mp4(path: Path, frames: Sequence[UInt8[np.ndarray, "height width 3"]], seconds: float) -> None:
    height, width = frames[0].shape[:2]
    figure = Figure(figsize=(width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH), dpi=_PIXELS_PER_INCH)
    shown = figure.figimage(frames[0], resize=False)
    rate: Any = 1 / seconds  # ffmpeg takes fractions, though matplotlib's signature says whole numbers
    writer = animation.FFMpegWriter(fps=rate, codec="h264", extra_args=["-pix_fmt", "yuv420p"])
    with rc_context({"savefig.bbox": None, "savefig.facecolor": "auto"}):
        FigureCanvasAgg(figure)
        with writer.saving(figure, str(path), _PIXELS_PER_INCH):
            for frame in (*frames, *[frames[-1]] * (_LAST - 1)):
                shown.set_data(frame)
                writer.grab_frame()
