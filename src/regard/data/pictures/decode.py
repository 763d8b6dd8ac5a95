"""A picture file of any kind that Pillow reads, as rows of red, green and blue bytes, upright.

What comes out is what a viewer on a white desk would show: turned as its EXIF data say, the first frame of an
animation, transparency laid on white, CMYK and palettes as colours, 16 bits scaled to 8 by their full range. What
cannot be read as a whole (cut off, empty, no picture, too large to be honest) is a `DataError` that names the file.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from regard.core.errors import DataError

MOST_PIXELS = 80_000_000
"""A larger picture is taken for a decompression bomb: a few bytes of file that fill the memory. It is less than where
Pillow begins to warn."""

_WHITE = (255, 255, 255, 255)


def decode(
    picture: Path | bytes, *, name: str | None = None, least: int | None = None
) -> UInt8[np.ndarray, "height width 3"]:
    """The picture in a file, or in the bytes of one, which `name` then stands for in errors.

    `least` permits a JPEG to be read at an eighth, a quarter or half of its size, when its shorter side stays at least
    so long: much quicker for photographs that are shrunk afterwards.
    """
    name = name or (str(picture) if isinstance(picture, Path) else f"a picture of {len(picture):,} bytes")
    try:
        content = picture.read_bytes() if isinstance(picture, Path) else picture
    except OSError as error:
        raise DataError(f"The picture {name} cannot be read: {error.strerror}.") from error
    if not content:
        raise DataError(f"The picture {name} is empty: it has zero bytes. Fetch it anew, or remove it.")
    try:
        with Image.open(io.BytesIO(content)) as image:
            return _decoded(image, name, least)
    except DataError:
        raise
    except Image.UnidentifiedImageError:
        raise DataError(f"{name} is no picture of a known kind; it starts with {content[:8]!r}.") from None
    except Image.DecompressionBombError as error:
        raise DataError(_too_large(name, str(error))) from None
    except Exception as error:  # decoders meet damaged bytes with whatever error comes to their mind
        raise DataError(f"The picture {name} is damaged or cut off: {error}.") from error


def _decoded(image: Image.Image, name: str, least: int | None) -> UInt8[np.ndarray, "height width 3"]:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise DataError(_too_large(name, f"{width:,} x {height:,} pixels"))
    if least is not None and min(width, height) > 0:
        image.draft(None, (-(-least * width // min(width, height)), -(-least * height // min(width, height))))
    image.load()
    turned = ImageOps.exif_transpose(image)
    return np.ascontiguousarray(_rgb(turned))


def _rgb(image: Image.Image) -> UInt8[np.ndarray, "height width 3"]:
    """Any mode as red, green and blue."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image)
        grey = _eight_bits(values)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        picture = image.convert("RGBA")
        desk = Image.new("RGBA", picture.size, _WHITE)
        return np.asarray(Image.alpha_composite(desk, picture).convert("RGB"))
    return np.asarray(image.convert("RGB"))


def _eight_bits(values: np.ndarray) -> UInt8[np.ndarray, "height width"]:
    """16-bit greys by their full range; 32-bit ones and floats, whose range no file says, are clipped to it."""
    if values.dtype.kind == "f":
        scaled = values * 255 if np.nanmax(values, initial=0) <= 1 else values
        return np.nan_to_num(scaled).round().clip(0, 255).astype(np.uint8)
    whole = values.astype(np.int64).clip(0, 65535)
    return ((whole * 255 + 32767) // 65535).astype(np.uint8)


def fitted(
    picture: UInt8[np.ndarray, "_ _ _"], height: int, width: int, channels: int
) -> UInt8[np.ndarray, "{height} {width} {channels}"]:
    """Resized so that it just covers the wanted size, and cut to its middle; grey by luma, or grey thrice."""
    if picture.shape[2] != channels:
        image = Image.fromarray(picture if picture.shape[2] == 3 else picture[:, :, 0])
        image = image.convert("RGB" if channels == 3 else "L")
    else:
        image = Image.fromarray(picture if channels == 3 else picture[:, :, 0])
    if image.size != (width, height):
        scale = max(height / image.height, width / image.width)
        across, down = width / scale, height / scale
        left, top = (image.width - across) / 2, (image.height - down) / 2
        box = (max(0.0, left), max(0.0, top), min(image.width, left + across), min(image.height, top + down))
        image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    return np.asarray(image).reshape(height, width, channels)


def _too_large(name: str, size: str) -> str:
    return f"The picture {name} is too large ({size}; at most {MOST_PIXELS:,} pixels). Shrink it, or remove it."
