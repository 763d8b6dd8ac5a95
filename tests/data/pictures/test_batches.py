"""Batches: each picture once an epoch, varied by what its entry says and by nothing else."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.pictures.augment import Augmentation
from regard.data.pictures.batches import LAST_EPOCH, PictureBatches
from regard.data.pictures.config import PictureConfig
from regard.data.pictures.dataset import PictureSet, measured
from regard.data.pictures.reading import ArrayPictures

EVERYTHING = Augmentation(
    crop_padding=2, flip=True, rand_augment_ops=2, erasing_rate=0.5, mixup_alpha=0.4, cutmix_alpha=1.0
)
LOW = (1 << 32) - 1


def picture_set(count: int = 103) -> PictureSet:
    random = np.random.default_rng(6)
    pictures = ArrayPictures(random.integers(0, 256, (count, 11, 13, 3), np.uint8))
    return PictureSet(pictures, random.integers(0, 5, count), measured(pictures, tuple("abcde")))


def batches(augmentation: Augmentation | None = None, *, batch_size: int = 17, seed: int = 3) -> PictureBatches:
    return PictureBatches(picture_set(), batch_size=batch_size, seed=seed, augmentation=augmentation)


@pytest.mark.parametrize("batch_size", [1, 17, 102, 103, 997])
def test_each_picture_once_in_batches_of_nearly_one_size(batch_size: int) -> None:
    planned = batches(batch_size=batch_size)
    for plan in (planned.epoch(0), planned.epoch(5), planned.sequential()):
        assert sorted((np.concatenate(plan) & LOW).tolist()) == list(range(103))
        sizes = [planned.count(batch) for batch in plan]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1
        assert all(batch.dtype == np.int64 for batch in plan)


def test_an_epoch_hangs_on_its_number_and_the_seed_alone() -> None:
    used, fresh = batches(), batches(EVERYTHING)
    used.epoch(4)
    for one, other in zip(used.epoch(3), fresh.epoch(3), strict=True):
        assert np.array_equal(one, other)
    orders = [planned.epoch(number) for planned, number in ((fresh, 0), (fresh, 1), (batches(seed=4), 0))]
    assert len({(np.concatenate(plan) & LOW).tobytes() for plan in orders}) == 3


def test_the_order_is_pinned() -> None:
    """A run that is resumed under another numpy must go on in the same order."""
    digest = hashlib.sha256(np.concatenate(batches().epoch(2)).astype("<i8").tobytes()).hexdigest()
    assert digest == "bb3c49a5a112a04af7117cb22185dcff904928a5f9f8d2e74444ccffe5162880"


def test_what_is_varied_is_pinned() -> None:
    """And with the same pictures: crops, flips and RandAugment's choices are whole numbers."""
    planned = batches(Augmentation(crop_padding=2, flip=True))
    pixels = planned.form.restore(planned.collate(planned.epoch(2)[1]).images)
    assert (
        hashlib.sha256(pixels.tobytes()).hexdigest()
        == "1f10beaa175758b2c0162b99c486190192df82f3a8b748f263654d8c62661442"
    )


def test_evaluation_sees_pictures_as_they_are_and_in_their_order() -> None:
    planned = batches(EVERYTHING)
    collated = [planned.collate(batch) for batch in planned.sequential()]
    pictures = planned.pictures
    assert np.array_equal(
        planned.form.restore(torch.cat([batch.images for batch in collated])), pictures.read(np.arange(103))
    )
    assert torch.cat([batch.targets for batch in collated]).tolist() == pictures.labels.tolist()
    assert collated[0].targets.dtype == torch.int64


def test_without_mixing_targets_are_classes() -> None:
    planned = batches(Augmentation(crop_padding=2, flip=True, rand_augment_ops=1, erasing_rate=1))
    batch = planned.epoch(0)[2]
    collated = planned.collate(batch)
    assert collated.targets.tolist() == planned.pictures.labels[batch & LOW].tolist()
    assert collated.images.shape == (len(batch), 3, 11, 13)
    assert collated.images.dtype == torch.float32
    assert collated.images.is_contiguous()


def test_nothing_is_varied_by_default() -> None:
    planned = batches()
    batch = planned.epoch(0)[2]
    assert np.array_equal(planned.form.restore(planned.collate(batch).images), planned.pictures.read(batch & LOW))


@pytest.mark.parametrize("mixing", [{"mixup_alpha": 0.5}, {"cutmix_alpha": 1.0}, {"mixup_alpha": 1, "cutmix_alpha": 1}])
def test_mixed_targets_add_up(mixing: dict[str, float]) -> None:
    planned = batches(Augmentation(**mixing))
    own = []
    for batch in planned.epoch(0):
        targets = planned.collate(batch).targets
        assert targets.shape == (len(batch), 5)
        torch.testing.assert_close(targets.sum(dim=1), torch.ones(len(batch)))
        assert targets.min() >= 0
        assert (targets > 0).sum(dim=1).max() <= 2
        own.append(targets[torch.arange(len(batch)), planned.pictures.labels[batch & LOW]])
    assert 0.45 < float(torch.cat(own).mean()) < 0.8


def test_mixup_mixes_what_the_targets_say() -> None:
    """Of pictures that are one colour by class, the mixture's colour gives the shares back."""
    labels = np.arange(101) % 2
    pictures = ArrayPictures(
        np.broadcast_to((labels * 255).astype(np.uint8)[:, None, None, None], (101, 5, 7, 1)).copy()
    )
    whole = PictureSet(pictures, labels, measured(pictures, ("dark", "light")))
    for mixing in ({"mixup_alpha": 0.5}, {"cutmix_alpha": 1.0}):
        planned = PictureBatches(whole, batch_size=101, seed=1, augmentation=Augmentation(**mixing))
        collated = planned.collate(planned.epoch(0)[0])
        light = collated.images * whole.form.std[0] + whole.form.mean[0]
        torch.testing.assert_close(light.mean(dim=(1, 2, 3)), collated.targets[:, 1], atol=1e-5, rtol=0)
        assert int(((collated.targets[:, 1] > 0.01) & (collated.targets[:, 1] < 0.99)).sum()) > 10


def test_collating_is_a_pure_function_of_the_entries() -> None:
    """Dealt out by rows to any number of processes, out of order, among other epochs, and after a resume."""
    planned, fresh = batches(EVERYTHING), batches(EVERYTHING)
    for number in (0, 1, 7):
        batch = planned.epoch(number)[3]
        whole = planned.collate(batch)
        for size in (2, 3, 5):
            for rank in reversed(range(size)):
                fresh.collate(fresh.epoch(number + 1)[0])
                share = fresh.collate(batch[rank::size])
                assert torch.equal(share.images, whole.images[rank::size])
                assert torch.equal(share.targets, whole.targets[rank::size])
    assert torch.equal(planned.collate(batch[:1]).images, whole.images[:1])


def test_global_generators_are_neither_read_nor_moved() -> None:
    planned = batches(EVERYTHING)
    batch = planned.epoch(0)[0]
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = planned.collate(batch)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    torch.manual_seed(2)
    assert torch.equal(planned.collate(batch).images, first.images)


def test_epochs_and_seeds_vary_a_picture_differently() -> None:
    views = set()
    for seed in (1, 2):
        planned = batches(Augmentation(crop_padding=4, flip=True, rand_augment_ops=1), seed=seed)
        for number in range(5):
            entries = np.concatenate(planned.epoch(number))
            views.add(planned.collate(entries[(entries & LOW) == 42]).images.numpy().tobytes())
    assert len(views) >= 9  # two may fall on one window by chance


def test_the_last_epoch_fits_and_kinds_are_not_mixed() -> None:
    planned = batches(EVERYTHING)
    entries = np.concatenate(planned.epoch(LAST_EPOCH))
    assert entries.min() > 0
    assert sorted((entries & LOW).tolist()) == list(range(103))
    planned.collate(entries[:3])
    with pytest.raises(AssertionError, match="one batch"):
        planned.collate(np.array([3, entries[0]]))


def test_batches_of_a_configuration() -> None:
    planned = PictureBatches.of(PictureConfig(source="cifar10", batch_size=29, seed=5), picture_set())
    assert planned.augmentation == Augmentation(crop_padding=4, flip=True)
    assert len(planned.epoch(0)) == 4
    with pytest.raises(ConfigError, match="A batch of 0"):
        batches(batch_size=0)
