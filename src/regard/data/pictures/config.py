"""What a run must know about its pictures: where they come from, how many are kept, how they are varied in training."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from regard.core.config import Config
from regard.data.pictures.distort import Distortion

Source = Literal["shapes", "cifar10", "cifar100", "mnist", "fashion_mnist", "svhn", "folder"]

USUAL_PADDING = {"shapes": 0, "cifar10": 4, "cifar100": 4, "mnist": 2, "fashion_mnist": 2, "svhn": 2}
"""Shapes lie anywhere in their pictures already; a house number's neighbours come in when it is moved far."""

USUAL_FLIP = {"mnist": False, "svhn": False}
"""A mirrored digit is none; everything else may be mirrored."""


class PictureConfig(Config):
    """Pictures with a class each, and their treatment; `load_pictures` brings them into memory."""

    source: Source = "shapes"
    """Generated shapes with known places, a public data set, or a folder of your own pictures."""

    root: str | None = None
    """Your folder (with source "folder"): train/CLASS/PICTURE, and valid/ and test/ likewise where you have them; or
    just CLASS/PICTURE. Parts that are missing are held out of the training pictures."""

    size: int | None = Field(None, ge=1)
    """Height and width in pixels; other pictures are resized by their shorter side and cut to the middle. As they are
    (None) works where all have one size; generated shapes are then 64 pixels."""

    batch_size: int = Field(128, ge=1)
    """The most pictures in a training batch; batches of an epoch differ by one picture at most."""

    seed: int = Field(1, ge=0)
    """For the generated shapes, the pictures that `fraction` keeps, the order of the batches and the augmentation."""

    fraction: float = Field(1.0, gt=0, le=1)
    """This share of every class of the training pictures is kept. With one seed, a smaller share is part of a larger
    one; validation and test pictures stay the same."""

    held_out: float = Field(0.1, gt=0, le=0.5)
    """Where a source has no validation (or test) pictures, this share of every class of train is held out for it."""

    num_pictures: int = Field(10_000, ge=1)
    """How many training pictures of shapes are generated; a tenth of it, at most 2,000, for valid and for test."""

    classes: Literal["shape", "shape_and_colour"] = "shape"
    """What a picture of shapes is called after: its largest thing's shape alone, or with its colour."""

    distortion: Distortion = "none"
    """Pictures are put somewhere on a larger canvas: turned and scaled, moved, or moved among scraps of others. In
    training this is drawn anew for each epoch. Only for pictures that fit into memory."""

    crop_padding: int | None = Field(None, ge=0)
    """Training pictures get a black rim of so many pixels, and a window of the old size is cut from anywhere. None is
    what suits the source: 4 for CIFAR, 2 for digits and fashion, 0 for shapes and distorted pictures, an eighth of the
    size for a folder."""

    flip: bool | None = None
    """Half of the training pictures are mirrored, left to right. None is what suits the source: all but digits."""

    rand_augment_ops: int = Field(0, ge=0)
    """RandAugment: so many operations, drawn from 14, are done on every training picture; 2 is usual, 0 is none."""

    rand_augment_magnitude: float = Field(9.0, ge=0, le=30)
    """RandAugment: how strong the operations are, from 0 (nothing) to 30 (most)."""

    erasing_rate: float = Field(0.0, ge=0, le=1)
    """The share of training pictures in which a rectangle is overwritten with the mean colour; 0.25 is usual."""

    mixup_alpha: float = Field(0.0, ge=0)
    """Mixup: pictures are mixed in pairs with weights of Beta(alpha, alpha); 0.2 to 0.8 is usual, 0 is none."""

    cutmix_alpha: float = Field(0.0, ge=0)
    """CutMix: a rectangle is taken from another picture, its area of Beta(alpha, alpha); 1 is usual, 0 is none. With
    mixup on as well, each picture gets one of the two by the toss of a coin."""

    on_bad: Literal["refuse", "skip"] = "refuse"
    """Whether a picture file that cannot be read stops the run, or is skipped and counted. Only files of your own are
    ever skipped: a damaged public data set is refused."""

    @property
    def padding(self) -> int:
        """`crop_padding`, with None decided."""
        if self.crop_padding is not None:
            return self.crop_padding
        if self.distortion != "none":
            return 0
        return USUAL_PADDING.get(self.source, (self.size or 0) // 8)

    @property
    def flips(self) -> bool:
        """`flip`, with None decided."""
        return USUAL_FLIP.get(self.source, True) if self.flip is None else self.flip

    def absolute(self) -> PictureConfig:
        """The same with an absolute path, so that a run can be resumed from another folder."""
        if self.root is None:
            return self
        return self.model_copy(update={"root": str(Path(self.root).expanduser().absolute())})
