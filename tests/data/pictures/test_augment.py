"""Each variation is exactly what it says it is, and hangs on the picture's own draws alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.data.pictures.augment import (
    ERASED_AREA,
    Augmentation,
    beta,
    cropped,
    cut,
    erased_window,
    mixed,
    rectangles,
)
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.draws import Draws

BATCH, HEIGHT, WIDTH = 97, 11, 13


def pictures(channels: int = 3) -> np.ndarray:
    """Without black, so that what comes in from outside can be told."""
    return np.random.default_rng(2).integers(1, 256, (BATCH, HEIGHT, WIDTH, channels), np.uint8)


def images(seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(BATCH, 3, HEIGHT, WIDTH)).astype(np.float32))


def draws(seed: int = 1) -> Draws:
    return Draws(seed, np.arange(BATCH))


def test_a_crop_is_a_window_of_the_padded_picture() -> None:
    random = np.random.default_rng(3)
    top, left = random.integers(0, 7, (2, BATCH))
    found = cropped(pictures().transpose(0, 3, 1, 2), 3, top, left)
    padded = np.pad(pictures(), ((0, 0), (3, 3), (3, 3), (0, 0)))
    for number in range(BATCH):
        window = padded[number, top[number] : top[number] + HEIGHT, left[number] : left[number] + WIDTH]
        assert np.array_equal(found[number].transpose(1, 2, 0), window)


def test_every_window_is_drawn_about_as_often() -> None:
    seen = {}
    white = np.full((BATCH, HEIGHT, WIDTH, 1), 255, np.uint8)
    for seed in range(30):
        for view in Augmentation(crop_padding=2).view(white, draws(seed)):
            rows, columns = np.flatnonzero(view[0].any(axis=1)), np.flatnonzero(view[0].any(axis=0))
            place = (rows[0], HEIGHT - 1 - rows[-1], columns[0], WIDTH - 1 - columns[-1])
            seen[place] = seen.get(place, 0) + 1
    assert len(seen) == 25
    assert min(seen.values()) > 0.6 * 30 * BATCH / 25


def test_half_are_mirrored_and_nothing_else_happens() -> None:
    views = Augmentation(flip=True).view(pictures(), draws()).transpose(0, 2, 3, 1)
    same = [np.array_equal(view, picture) for view, picture in zip(views, pictures(), strict=True)]
    turned = [np.array_equal(view, picture[:, ::-1]) for view, picture in zip(views, pictures(), strict=True)]
    assert all(one != other for one, other in zip(same, turned, strict=True))
    assert 30 < sum(turned) < 67


def test_without_options_nothing_happens() -> None:
    none = Augmentation()
    assert np.array_equal(none.view(pictures(), draws()).transpose(0, 2, 3, 1), pictures())
    assert none.erase(images(1), draws()) is not None
    assert torch.equal(none.erase(images(1), draws()), images(1))
    assert not none.mixes


def test_the_pictures_of_the_set_are_never_written_to() -> None:
    given = pictures()
    Augmentation(crop_padding=2, flip=True, rand_augment_ops=3).view(given, draws())
    Augmentation(flip=True).view(given, draws())
    assert np.array_equal(given, pictures())


def test_a_picture_is_varied_by_its_own_draws() -> None:
    varied = Augmentation(crop_padding=2, flip=True, rand_augment_ops=2, erasing_rate=0.5)
    together = varied.view(pictures(), draws())
    chosen = np.array([5, 89, 17])
    alone = varied.view(pictures()[chosen], Draws(1, chosen))
    assert np.array_equal(together[chosen], alone)
    erased = varied.erase(images(1), draws())
    assert torch.equal(erased[chosen], varied.erase(images(1)[chosen], Draws(1, chosen)))


def test_an_erased_rectangle_is_black_and_the_rest_untouched() -> None:
    erased = Augmentation(erasing_rate=0.25).erase(images(1), draws())
    changed = (erased != images(1)).any(dim=1)
    assert 10 < int(changed.any(dim=(1, 2)).sum()) < 40
    for number in range(BATCH):
        rows, columns = (changed[number].any(dim=axis).nonzero().flatten() for axis in (1, 0))
        if len(rows):
            window = erased[number][:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            assert not window.any()
            assert window[0].numel() == changed[number].sum()
    assert torch.equal(Augmentation(erasing_rate=1.0).erase(images(1), draws()) != images(1), _windows(draws()))


def _windows(own: Draws) -> torch.Tensor:
    own.uniform()
    window = torch.from_numpy(erased_window(HEIGHT, WIDTH, own))
    return window[:, None].expand(-1, 3, -1, -1)


def test_erased_areas_are_spread_as_the_paper_says() -> None:
    window = erased_window(101, 103, Draws(1, np.arange(2003)))
    area = window.mean(axis=(1, 2))
    assert ERASED_AREA[0] * 0.9 < area.min() < 0.03
    assert 0.3 < area.max() < ERASED_AREA[1] * 1.05
    assert area.mean() == pytest.approx(np.mean(ERASED_AREA), abs=0.01)


def test_mixup_is_a_weighted_mean() -> None:
    kept = np.linspace(0, 1, BATCH)
    found, weight = mixed(images(1), images(2), kept)
    for number in (0, 1, 31, 96):
        expected = kept[number] * images(1)[number] + (1 - kept[number]) * images(2)[number]
        torch.testing.assert_close(found[number].double(), expected.double(), atol=1e-6, rtol=0)
    assert weight == pytest.approx(kept)
    assert torch.equal(found[-1], images(1)[-1])


def test_cutmix_takes_a_rectangle_and_counts_its_pixels() -> None:
    kept = np.linspace(0, 1, BATCH)
    found, weight = cut(images(1), images(2), kept, draws())
    own, other = (found == images(1)).all(dim=1), (found == images(2)).all(dim=1)
    assert bool((own ^ other).all())
    assert own.float().mean(dim=(1, 2)).numpy() == pytest.approx(weight)
    assert (weight >= kept - 1e-6).all()  # what sticks out of the picture is not taken
    for number in range(BATCH):
        rows, columns = (other[number].any(dim=axis).nonzero().flatten() for axis in (1, 0))
        assert len(rows) <= int(HEIGHT * np.sqrt(1 - kept[number]))
        assert len(rows) * len(columns) == int(other[number].sum())
    assert weight[-1] == 1


def test_with_both_a_coin_decides() -> None:
    both = Augmentation(mixup_alpha=0.7, cutmix_alpha=1.0)
    found, weight = both.mix(images(1), images(2), draws())
    share = ((found == images(1)).all(dim=1) | (found == images(2)).all(dim=1)).float().mean(dim=(1, 2))
    assert 30 < int((share == 1).sum()) < 70
    assert weight.min() >= 0
    assert weight.max() <= 1
    chosen = np.array([5, 89, 17])
    again, _ = both.mix(images(1)[chosen], images(2)[chosen], Draws(1, chosen))
    assert torch.equal(again, found[chosen])


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 2.0, 8.0])
def test_quantiles_of_beta(alpha: float) -> None:
    """Against numpy's own draws of Beta(alpha, alpha), by the whole distribution."""
    uniform = (np.arange(20_011) + 0.5) / 20_011
    found = beta(alpha, uniform)
    drawn = np.sort(np.random.default_rng(1).beta(alpha, alpha, 200_110))[5::10]
    assert np.abs(found - drawn).max() < 0.01
    assert found.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=1e-3)
    assert found[::-1] == pytest.approx(1 - found, abs=1e-12)


def test_quantiles_of_beta_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    uniform = np.linspace(0.001, 0.999, 997)
    for alpha in (0.1, 0.4, 1.0, 1.5, 8.0):
        assert beta(alpha, uniform) == pytest.approx(stats.beta(alpha, alpha).ppf(uniform), abs=1e-4)


def test_rectangles_end_before_their_ends() -> None:
    ends = (np.array([value]) for value in (1, 3, 0, 2))
    assert rectangles(4, 3, *ends)[0].astype(int).tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_the_augmentation_of_a_configuration() -> None:
    config = PictureConfig(source="cifar10", rand_augment_ops=2, mixup_alpha=0.2, erasing_rate=0.1)
    assert Augmentation.of(config) == Augmentation(4, True, 2, 9.0, 0.1, 0.2, 0.0)
    assert Augmentation.of(config).mixes
