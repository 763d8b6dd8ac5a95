"""Every kind of picture file that people have lying about comes out as upright RGB bytes, or is refused by name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.pictures import decode as module
from regard.data.pictures.decode import decode, fitted

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def corners(height: int = 7, width: int = 11) -> np.ndarray:
    """Red at the top left, green at the top right, blue at the bottom left, black elsewhere."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[0, 0], picture[0, -1], picture[-1, 0] = RED, GREEN, BLUE
    return picture


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def noise(height: int = 67, width: int = 97) -> Image.Image:
    return Image.fromarray(np.random.default_rng(5).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_colours_come_out_as_they_went_in(tmp_path: Path, kind: str) -> None:
    content = encoded(Image.fromarray(corners()), kind, **({"lossless": True} if kind == "WEBP" else {}))
    (tmp_path / "a").write_bytes(content)
    assert np.array_equal(decode(content), corners())
    assert np.array_equal(decode(tmp_path / "a"), corners())


@pytest.mark.parametrize(
    ("orientation", "undo"),
    [
        (1, lambda p: p),
        (2, lambda p: p[:, ::-1]),
        (3, lambda p: p[::-1, ::-1]),
        (4, lambda p: p[::-1]),
        (5, lambda p: p.transpose(1, 0, 2)),
        (6, lambda p: np.rot90(p, -1)),
        (7, lambda p: p[::-1, ::-1].transpose(1, 0, 2)),
        (8, lambda p: np.rot90(p)),
    ],
)
def test_a_turned_photograph_is_turned_upright(orientation: int, undo) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = corners()
    assert np.array_equal(decode(encoded(Image.fromarray(stored), exif=exif)), undo(stored))


def test_greys_of_all_depths() -> None:
    row = np.array([[0, 1, 128, 254, 255]], np.uint8)
    thrice = np.repeat(row[:, :, None], 3, axis=2)
    assert np.array_equal(decode(encoded(Image.fromarray(row))), thrice)
    deep = Image.fromarray(row.astype(np.uint16) * 257)
    assert np.array_equal(decode(encoded(deep)), thrice)
    assert np.array_equal(decode(encoded(deep, "TIFF")), thrice)
    whole = Image.fromarray(row.astype(np.int32) * 257)
    assert np.array_equal(decode(encoded(whole, "TIFF")), thrice)
    floats = Image.fromarray(row.astype(np.float32) / 255)
    assert np.array_equal(decode(encoded(floats, "TIFF")), thrice)
    bits = Image.fromarray(row > 127)
    assert np.array_equal(decode(encoded(bits))[0, :, 0], [0, 0, 255, 255, 255])


def test_transparency_is_laid_on_white() -> None:
    colour = np.zeros((2, 3, 4), np.uint8)
    colour[..., 0], colour[..., 3] = 255, [0, 51, 255]
    expected = np.broadcast_to(np.array([(255, 255, 255), (255, 204, 204), (255, 0, 0)], np.uint8), (2, 3, 3))
    assert np.array_equal(decode(encoded(Image.fromarray(colour))), expected)
    grey = np.zeros((2, 3, 2), np.uint8)
    grey[..., 1] = [0, 51, 255]
    assert np.array_equal(decode(encoded(Image.fromarray(grey, "LA")))[0, :, 0], [255, 204, 0])


def test_palettes_with_and_without_transparency() -> None:
    palette = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    palette.putpalette([*RED, *GREEN, *BLUE])
    assert np.array_equal(decode(encoded(palette)), np.array([[RED, GREEN, BLUE]], np.uint8))
    white = np.array([[RED, (255, 255, 255), BLUE]], np.uint8)
    assert np.array_equal(decode(encoded(palette, transparency=1)), white)
    assert np.array_equal(decode(encoded(palette, transparency=b"\xff\x00\xff")), white)
    assert np.array_equal(decode(encoded(palette, "GIF", transparency=1)), white)


def test_printing_colours() -> None:
    cyan = Image.new("CMYK", (3, 2), (255, 0, 0, 0))
    assert decode(encoded(cyan, "TIFF"))[0, 0].tolist() == [0, 255, 255]
    assert np.abs(decode(encoded(cyan, "JPEG", quality=95))[0, 0].astype(int) - [0, 255, 255]).max() < 6


def test_of_an_animation_the_first_frame() -> None:
    frames = [Image.new("RGB", (5, 3), colour) for colour in (RED, GREEN, BLUE)]
    for kind in ("GIF", "PNG", "WEBP"):
        content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
        assert np.abs(decode(content)[1, 1].astype(int) - RED).max() < 6


def test_one_pixel() -> None:
    assert decode(encoded(Image.new("RGB", (1, 1), BLUE))).tolist() == [[[0, 0, 255]]]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "WEBP"])
@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_refused_by_name(tmp_path: Path, kind: str, share: float) -> None:
    content = encoded(noise(), kind)
    path = tmp_path / "cut.picture"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"cut\.picture"):
        decode(path)


def test_damage_in_the_middle_is_refused() -> None:
    content = bytearray(encoded(noise()))
    content[len(content) // 2] ^= 255
    with pytest.raises(DataError, match="The picture x is damaged"):
        decode(bytes(content), name="x")


def test_what_is_no_picture_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "page.jpg").write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"empty\.jpg is empty: it has zero bytes"):
        decode(tmp_path / "empty.jpg")
    with pytest.raises(DataError, match=r"page\.jpg is no picture of a known kind; it starts with b'<html>no'"):
        decode(tmp_path / "page.jpg")
    with pytest.raises(DataError, match=r"missing\.jpg cannot be read: No such file"):
        decode(tmp_path / "missing.jpg")
    with pytest.raises(DataError, match=r"cannot be read: Is a directory"):
        decode(tmp_path)


def test_a_bomb_is_refused_before_it_goes_off(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = encoded(Image.new("1", (20_011, 10_007)))
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="The picture bomb is too large"):
        decode(bomb, name="bomb")
    monkeypatch.setattr(module, "MOST_PIXELS", 76)
    with pytest.raises(DataError, match=r"too large \(11 x 7 pixels; at most 76 pixels\)"):
        decode(encoded(Image.fromarray(corners())))


def test_a_large_jpeg_may_be_read_small() -> None:
    content = encoded(noise(670, 970), "JPEG", quality=90)
    assert decode(content).shape == (670, 970, 3)
    small = decode(content, least=97)
    assert 97 <= min(small.shape[:2]) < 200
    assert decode(content, least=5000).shape == (670, 970, 3)


def test_fitting_keeps_the_aspect_and_the_middle() -> None:
    picture = np.zeros((40, 80, 3), np.uint8)
    picture[:, 20:60] = 255
    assert fitted(picture, 10, 10, 3)[:, 1:-1].min() == 255
    tall = fitted(picture.transpose(1, 0, 2).copy(), 10, 10, 3)
    assert tall[1:-1].min() == 255
    assert tall[0].max() < 255
    whole = fitted(picture, 20, 40, 3)
    assert whole[:, 12:28].min() == 255
    assert whole[:, :8].max() == 0


def test_fitting_changes_nothing_that_fits() -> None:
    picture = np.asarray(noise(13, 17))
    assert np.array_equal(fitted(picture, 13, 17, 3), picture)
    grey = picture[:, :, :1]
    assert np.array_equal(fitted(grey, 13, 17, 1), grey)
    assert np.array_equal(fitted(grey, 13, 17, 3), np.repeat(grey, 3, axis=2))
    luma = picture.astype(float) @ [0.299, 0.587, 0.114]
    assert np.abs(fitted(picture, 13, 17, 1)[:, :, 0] - luma).max() <= 1


def test_fitting_works_from_one_pixel_to_a_strip() -> None:
    assert fitted(np.full((1, 1, 3), 7, np.uint8), 5, 3, 3).tolist() == [[[7] * 3] * 3] * 5
    assert fitted(np.full((1, 997, 3), 7, np.uint8), 5, 5, 1).tolist() == [[[7]] * 5] * 5
