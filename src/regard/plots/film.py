"""Pictures one after another as a GIF or an MP4: how attention appears, sharpens or dies while a model learns."""

from __future__ import annotations

import contextlib
import io
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8
from matplotlib import animation
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
    frames = _Frames(figures)
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


class _Frames:
    """All pictures in pixels, packed in memory; of one size with even sides (what video coders ask for)."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._packed: list[bytes] = []
        self._backgrounds: list[tuple[int, ...]] = []
        self.width = self.height = 0
        for figure in figures:
            if len(self) == MAX_FRAMES:
                raise ConfigError(f"A film has at most {MAX_FRAMES} pictures; leave some out, such as every second.")
            image = _rendered(figure)
            self.width, self.height = max(self.width, image.width), max(self.height, image.height)
            self._packed.append(_packed(image))
            self._backgrounds.append(tuple(round(255 * part) for part in to_rgb(figure.get_facecolor())))
        if not self._packed:
            raise ConfigError("A film needs at least one picture; none was given.")
        self.width, self.height = self.width + self.width % 2, self.height + self.height % 2

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, number: int) -> Image.Image:
        frame = Image.new("RGB", (self.width, self.height), self._backgrounds[number])
        with Image.open(io.BytesIO(self._packed[number])) as image:
            frame.paste(image)
        return frame


def _rendered(figure: Figure) -> Image.Image:
    before = figure.get_dpi()
    figure.set_dpi(_PIXELS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_dpi(before)
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _packed(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


def _write_gif(path: Path, frames: _Frames, seconds: float) -> None:
    colours, exact = _palette_of(frames)
    first, *others = (_in_palette(frames[number], colours, exact) for number in range(len(frames)))
    times = [round(1000 * seconds)] * len(others) + [round(1000 * seconds * _LAST)]
    first.save(path, save_all=True, append_images=others, duration=times, loop=0)


def _palette_of(frames: _Frames) -> tuple[Image.Image, Int[np.ndarray, "exact"]]:
    """One palette for all frames, so that a colour means the same weight throughout, and those it has exactly.

    Half of it are the most frequent colours as they are (the background, which is zero, above all); the other half are
    chosen for the rest.
    """
    some = {*range(0, len(frames), max(1, len(frames) // 16)), len(frames) - 1}
    pixels = np.concatenate([np.asarray(frames[number])[::2, ::2].reshape(-1, 3) for number in sorted(some)])
    found, counts = np.unique(_codes(pixels), return_counts=True)
    exact = found[np.argsort(-counts, kind="stable")[:128]]
    triples = np.stack([exact >> 16, exact >> 8 & 255, exact & 255], axis=1)
    rest = Image.fromarray(pixels[None]).quantize(128, method=Image.Quantize.MEDIANCUT).getpalette() or []
    colours = Image.new("P", (1, 1))
    colours.putpalette([*triples.ravel().tolist(), *rest])
    return colours, exact


def _in_palette(frame: Image.Image, colours: Image.Image, exact: Int[np.ndarray, "exact"]) -> Image.Image:
    """Pillow's search for the nearest colour is not quite exact, so those that are there are set by hand."""
    image = frame.quantize(palette=colours, dither=Image.Dither.NONE)
    codes, order = _codes(np.asarray(frame)), np.argsort(exact)
    places = order[np.searchsorted(exact[order], codes).clip(max=len(exact) - 1)]
    indices = np.where(exact[places] == codes, places, np.asarray(image)).astype(np.uint8)
    result = Image.fromarray(indices)
    result.putpalette(image.getpalette() or [])
    return result


def _codes(pixels: UInt8[np.ndarray, "*shape 3"]) -> Int[np.ndarray, "*shape"]:
    """A colour as one number."""
    wide = pixels.astype(np.int64)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]


def _write_mp4(path: Path, frames: _Frames, seconds: float) -> None:
    order = [*range(len(frames)), *[len(frames) - 1] * (_LAST - 1)]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{frames.width}x{frames.height}", "-r", f"{1 / seconds:g}"]
    target = ["-c:v", "h264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path)]
    command = [animation.FFMpegWriter.bin_path(), "-y", "-loglevel", "error", *source, "-i", "-", *target]
    with tempfile.TemporaryFile() as said:
        coder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said)
        assert coder.stdin is not None
        with contextlib.suppress(BrokenPipeError), coder.stdin as pipe:
            for number in order:
                pipe.write(frames[number].tobytes())
        if coder.wait() != 0:
            said.seek(0)
            reason = said.read().decode(errors="replace").strip().splitlines() or ["it does not say why"]
            raise ConfigError(f"ffmpeg could not write the film: {reason[-1]}. Write a .gif instead.")
