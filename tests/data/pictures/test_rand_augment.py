"""Every operation of RandAugment against torchvision's or Pillow's own, and that each picture gets its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from regard.data.pictures.draws import Draws
from regard.data.pictures.rand_augment import OPERATIONS, rand_augment

HEIGHT, WIDTH = 29, 37
SIGNS = np.array([1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
LEVELS = (0.0, 0.3, 0.77, 1.0)


def pictures(channels: int = 3) -> np.ndarray:
    """Smooth shades with some noise and a picture of few levels, as photographs have."""
    random = np.random.default_rng(4)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = random.uniform(0.05, 0.3, (2, len(SIGNS), channels, 1, 1))
    smooth = 120 + 70 * np.sin(waves[0] * x) + 50 * np.cos(waves[1] * y)
    found = (smooth + random.normal(0, 6, (len(SIGNS), channels, HEIGHT, WIDTH))).clip(0, 255).astype(np.uint8)
    found[1] //= 64
    found[2] = 77
    return found


def done(name: str, level: float, channels: int = 3) -> np.ndarray:
    return OPERATIONS[name](pictures(channels), level, SIGNS)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["shear_x", "shear_y", "translate_x", "translate_y", "rotate"])
def test_moves_are_torchvisions(name: str, level: float) -> None:
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    found = done(name, level)
    for picture, sign, ours in zip(pictures(), SIGNS, found, strict=True):
        angle, translate, shear, center = 0.0, [0, 0], [0.0, 0.0], None
        if name.startswith("shear"):
            degrees = math.degrees(math.atan(sign * 0.3 * level))
            shear = [degrees, 0.0] if name == "shear_x" else [0.0, degrees]
            center = [0, 0]
        elif name == "rotate":
            angle = -sign * 30 * level  # its affine turns with the clock, its rotate, like ours, against it
        else:
            side = WIDTH if name == "translate_x" else HEIGHT
            pixels = int(sign * 150 / 331 * level * side)
            translate = [pixels, 0] if name == "translate_x" else [0, pixels]
        theirs = functional.affine(torch.from_numpy(picture), angle, translate, 1.0, shear, center=center).numpy()
        differing = (theirs != ours).any(axis=0).mean()
        assert differing < 0.02, (name, level, differing)  # where a pixel's middle falls between two


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("channels", [1, 3])
def test_colours_are_torchvisions(level: float, channels: int) -> None:
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    theirs = {
        "brightness": lambda image, sign: functional.adjust_brightness(image, 1 + 0.9 * level * sign),
        "colour": lambda image, sign: functional.adjust_saturation(image, 1 + 0.9 * level * sign),
        "contrast": lambda image, sign: functional.adjust_contrast(image, 1 + 0.9 * level * sign),
        "sharpness": lambda image, sign: functional.adjust_sharpness(image, 1 + 0.9 * level * sign),
        "posterize": lambda image, sign: functional.posterize(image, 8 - round(4 * level)),
        "solarize": lambda image, sign: functional.solarize(image, 255 * (1 - level)),
        "autocontrast": lambda image, sign: functional.autocontrast(image),
        "equalize": lambda image, sign: functional.equalize(image),
        "identity": lambda image, sign: image,
    }
    for name, function in theirs.items():
        found = done(name, level, channels)
        for picture, sign, ours in zip(pictures(channels), SIGNS, found, strict=True):
            expected = function(torch.from_numpy(picture), float(sign)).numpy()
            off = np.abs(expected.astype(int) - ours.astype(int))
            assert off.max() <= 1, (name, off.max())
            if name != "autocontrast" and picture.std() > 10:  # whose float32 arithmetic often falls just short there
                assert (off > 0).mean() < 0.05, (name, (off > 0).mean())
    assert set(theirs) | {"shear_x", "shear_y", "translate_x", "translate_y", "rotate"} == set(OPERATIONS)


def test_colours_are_pillows() -> None:
    equal = {"equalize": ImageOps.equalize, "posterize": lambda image: ImageOps.posterize(image, 5)}
    for name, function in equal.items():
        for picture, ours in zip(pictures(), done(name, 0.75), strict=True):
            expected = np.asarray(function(Image.fromarray(picture.transpose(1, 2, 0).copy())))
            assert np.array_equal(expected, ours.transpose(1, 2, 0)), name
    near = {"brightness": ImageEnhance.Brightness, "colour": ImageEnhance.Color, "autocontrast": None}
    for name, enhancer in near.items():
        for picture, sign, ours in zip(pictures(), SIGNS, done(name, 0.5), strict=True):
            image = Image.fromarray(picture.transpose(1, 2, 0).copy())
            shown = ImageOps.autocontrast(image) if enhancer is None else enhancer(image).enhance(1 + 0.45 * sign)
            assert np.abs(np.asarray(shown).astype(int) - ours.transpose(1, 2, 0)).max() <= 2, name


def test_what_is_exact_is_exact() -> None:
    """Where float32 would fall short of a whole number by a hair, rounding down must not take one away."""
    even = pictures()[2:3]
    for name in ("contrast", "colour", "sharpness", "autocontrast", "equalize"):
        assert np.array_equal(OPERATIONS[name](even, 0.3, np.ones(1)), even), name
    four = done("autocontrast", 0.5)[1]
    low, high = pictures()[1].min(axis=(1, 2)), pictures()[1].max(axis=(1, 2))
    for channel, picture in enumerate(pictures()[1].astype(int)):
        assert np.array_equal(four[channel], (picture - low[channel]) * 255 // (int(high[channel]) - int(low[channel])))


def test_translation_shifts_by_whole_pixels() -> None:
    found = done("translate_x", 0.5)
    pixels = int(150 / 331 * 0.5 * WIDTH)
    assert np.array_equal(found[0][:, :, pixels:], pictures()[0][:, :, :-pixels])
    assert np.array_equal(found[1][:, :, :-pixels], pictures()[1][:, :, pixels:])
    assert not found[0][:, :, :pixels].any()


def test_at_level_zero_all_but_the_absolute_ones_do_nothing() -> None:
    for name in OPERATIONS:
        if name not in ("autocontrast", "equalize", "solarize"):
            assert np.array_equal(done(name, 0.0), pictures()), name
    brightest = pictures() == 255
    assert np.array_equal(done("solarize", 0.0)[~brightest], pictures()[~brightest])


def test_tiny_and_even_pictures_are_no_trouble() -> None:
    for shape in ((1, 3, 1, 1), (1, 1, 2, 5), (2, 3, 7, 1)):
        picture = np.full(shape, 200, np.uint8)
        for name, operation in OPERATIONS.items():
            found = operation(picture, 1.0, np.ones(len(picture)))
            assert found.shape == shape, name
            assert found.dtype == np.uint8, name


def test_each_picture_gets_an_operation_of_its_own() -> None:
    numbers = np.arange(9_973)
    small = np.random.default_rng(1).integers(0, 256, (9_973, 3, 5, 7), np.uint8)
    found = rand_augment(small, 15, Draws(1, numbers))
    draws = Draws(1, numbers)
    chosen, coins = draws.below(14), draws.uniform()
    assert np.bincount(chosen).min() > 600
    for number in (0, 1, 97, 5003, 9972):
        operation = list(OPERATIONS.values())[chosen[number]]
        sign = np.array([-1.0 if coins[number] < 0.5 else 1.0])
        assert np.array_equal(operation(small[number : number + 1], 0.5, sign)[0], found[number])
