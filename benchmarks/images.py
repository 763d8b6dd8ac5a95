"""Picture classifiers beside timm and `transformers`: the same sizes, the same weights, the same logits.

    python benchmarks/images.py [--minutes 10] [--only swin] [--out results/benchmarks/images.json]

Every family is measured in inference and in training (forward, backward, no optimizer), in float32 and under bfloat16
autocast. Both sides run in this process, in turn, at the same precision, each round in both orders; a ratio is the
median of the rounds, so that a noisy machine disturbs both alike. Logits are compared first, and the largest difference
is written beside the ratio: a ratio counts only for equal logits.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from regard.core.files import write_json
from regard.core.models import models
from regard.pretrained.checkpoint import channels_of, classes_of
from regard.pretrained.states import recognised
from regard.pretrained.timm_checkpoints import facts_of
from regard.pretrained.transformers_checkpoints import READERS, USUAL
from regard.recipes.machine import describe_machine

CLASSES = 10
AIMS = {"least": 1.0, "median": 1.2}

TIMM = {
    "vit_tiny_patch16_224": 4,
    "deit_tiny_distilled_patch16_224": 4,
    "swin_tiny_patch4_window7_224": 2,
    "swinv2_tiny_window8_256": 2,
    "mvitv2_tiny": 2,
    "convnext_tiny": 2,
    "mixer_s32_224": 8,
    "resnet50": 2,
    "resnetv2_50x1_bit": 2,
}
"""Architectures, and how many pictures are shown at once."""

TRANSFORMERS = {
    "vit": (transformers.ViTConfig, transformers.ViTForImageClassification, {"num_hidden_layers": 4}, 2),
    "deit": (transformers.DeiTConfig, transformers.DeiTForImageClassificationWithTeacher, {"num_hidden_layers": 4}, 2),
    "swin": (transformers.SwinConfig, transformers.SwinForImageClassification, {}, 2),
    "swinv2": (transformers.Swinv2Config, transformers.Swinv2ForImageClassification, {}, 2),
    "convnext": (transformers.ConvNextConfig, transformers.ConvNextForImageClassification, {}, 2),
    "resnet": (transformers.ResNetConfig, transformers.ResNetForImageClassification, {}, 2),
}

Logits = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Pair:
    """A peer and our model with its weights; both give logits."""

    name: str
    library: str
    peer: nn.Module
    ours: nn.Module
    images: Tensor

    def logits(self, side: str) -> Logits:
        model = self.peer if side == "peer" else self.ours
        return lambda images: _logits(model(images))

    @property
    def difference(self) -> float:
        """The largest between logits, in float32."""
        with torch.no_grad():
            theirs, mine = (self.logits(side)(self.images) for side in ("peer", "ours"))
        return float((theirs - mine).abs().max())


def pairs(only: str) -> Iterator[Pair]:
    """One at a time, because together they would need much memory."""
    for name, batch in TIMM.items():
        if only in name:
            peer = timm.create_model(name, num_classes=CLASSES).eval()
            state = peer.state_dict()
            config, tensors = recognised(state).read(state, facts_of(name))
            side = timm.data.resolve_model_data_config(peer)["input_size"][1]
            yield Pair(name, "timm", peer, _built(config, tensors), torch.randn(batch, 3, side, side))
    for name, (make, build, options, batch) in TRANSFORMERS.items():
        if only in name:
            settings = make(num_labels=CLASSES, **options)
            peer = build(settings).eval()
            config, tensors = READERS[name](peer.state_dict(), {**USUAL.get(name, {}), **settings.to_dict()})
            side = getattr(settings, "image_size", 224)
            yield Pair(name, "transformers", peer, _built(config, tensors), torch.randn(batch, 3, side, side))


def _built(config: Any, tensors: dict[str, Tensor]) -> nn.Module:
    model = models[config.kind].build(config, classes_of(tensors), channels_of(tensors))
    model.load_state_dict(tensors)
    return model.eval()


def _logits(output: Any) -> Tensor:
    if isinstance(output, tuple):  # a distilled model of timm in training: the mean of both heads is as good
        return (output[0] + output[1]) / 2
    return getattr(output, "logits", output)


def inference(pair: Pair, side: str, dtype: torch.dtype) -> Callable[[], int]:
    logits = pair.logits(side)

    def run() -> int:
        with torch.inference_mode(), _precision(dtype):
            logits(pair.images)
        return len(pair.images)

    return run


def training(pair: Pair, side: str, dtype: torch.dtype) -> Callable[[], int]:
    """Without dropout and stochastic depth, which differ between the libraries."""
    logits = pair.logits(side)
    model = pair.peer if side == "peer" else pair.ours
    targets = torch.arange(len(pair.images)) % CLASSES

    def run() -> int:
        with _precision(dtype):
            loss = F.cross_entropy(logits(pair.images).float(), targets)
        loss.backward()
        model.zero_grad(set_to_none=True)
        return len(pair.images)

    return run


def _precision(dtype: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    return torch.autocast("cpu", dtype, enabled=dtype != torch.float32)


def in_turn(sides: dict[str, Callable[[], int]], seconds: float) -> dict[str, Any]:
    """Runs both sides in turn for about `seconds`; pictures per second of each, and our ratio by rounds."""
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    started, turn = time.perf_counter(), 0
    while turn < 3 or time.perf_counter() - started < seconds:
        for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            gc.collect()
            begin = time.perf_counter()
            things = sides[name]()
            speeds[name].append(things / (time.perf_counter() - begin))
        turn += 1
    ratio = statistics.median(one / other for one, other in zip(speeds["ours"], speeds["peer"], strict=True))
    medians = {f"{name}_per_second": round(statistics.median(values), 2) for name, values in speeds.items()}
    return {**medians, "ratio": round(ratio, 3), "rounds": turn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all measurements together")
    parser.add_argument("--only", default="", help="families whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/images.json"))
    arguments = parser.parse_args()
    torch.manual_seed(0)
    names = [name for name in (*TIMM, *TRANSFORMERS) if arguments.only in name]
    seconds = arguments.minutes * 60 / (4 * max(len(names), 1))
    measured = []
    for pair in pairs(arguments.only):
        difference = pair.difference
        for dtype in (torch.float32, torch.bfloat16):
            for what, make in (("inference", inference), ("training", training)):
                result = in_turn({side: make(pair, side, dtype) for side in ("peer", "ours")}, seconds)
                about = {"family": pair.name, "peer": pair.library, "what": what, "precision": str(dtype)[6:]}
                measured.append({**about, "largest_difference": difference, **result})
                print(json.dumps(measured[-1]), flush=True)
    ratios = [entry["ratio"] for entry in measured]
    summary = {"least": min(ratios), "median": round(statistics.median(ratios), 3)} if ratios else {}
    write_json(
        arguments.out,
        {
            "command": "python benchmarks/images.py",
            "date": time.strftime("%Y-%m-%d"),
            "machine": describe_machine(),
            "threads": torch.get_num_threads(),
            "aims": AIMS,
            "reached": summary,
            "measured": measured,
        },
    )
    print(f"{summary}; written to {arguments.out}")


if __name__ == "__main__":
    main()
