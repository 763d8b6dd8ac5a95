"""Makes the pictures of `docs/pictures.md`, beside this file: `python docs/pictures/make.py [RUNS]`.

RUNS is a folder with runs of the recipes `rnnsearch` and `transformer` in `RUNS/rnnsearch` and `RUNS/transformer`; what
is not there is trained first (some minutes). The pictures over pictures need no training: the queries and keys are
colours, so that attention is a comparison of colours, as in non-local means.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

from regard.cli.main import main as regard
from regard.core.axes import Boxes, Grid, Text
from regard.core.relations import DotRelation
from regard.data.pictures.shapes.generating import generate, scene_numbers
from regard.data.pictures.shapes.scene import COLOURS
from regard.layers.positions import sinusoidal_positions
from regard.plots import draw_overlay, draw_positions, draw_scan_path, draw_strip, save
from regard.recording import Recording

HERE = Path(__file__).parent
SENTENCE = "The agreement on the European Economic Area was signed in August 1992 ."
SIDE, PATCHES = 96, 12

# How sharply colours are compared; heads differ in nothing else.
SHARPNESS = (15.0, 60.0)


def main(runs: Path) -> None:
    for recipe in ("rnnsearch", "transformer"):
        if not (runs / recipe / "config.json").exists():
            _called("train", recipe, "--run", runs / recipe)
    kept = runs / "transformer.regard"
    look = ("look", runs / "transformer", SENTENCE)
    _called("look", runs / "rnnsearch", SENTENCE, "--dark", "--out", HERE / "alignment-dark.png")
    _called(*look, "--out", kept)
    _called("look", kept, "--tap", "decoder.1.cross", "--view", "heads", "--out", HERE / "heads.png")
    words = ("--tap", "decoder.1.cross", "--view", "words", "--head", "2")
    _called("look", kept, *words, "--out", HERE / "words.png")
    _shrink(HERE / "words.png")
    for view in ("layers", "distance", "entropy", "rollout"):
        _called("look", kept, "--view", view, "--out", HERE / f"{view}.png")
    kept.unlink()
    _saved(draw_positions(sinusoidal_positions(100, 128), title="Sinusoidal positions, d = 128"), "positions")
    _draw_colours()


def _draw_colours() -> None:
    """A generated scene: where each of its things and each of its colours looks."""
    number = scene_numbers(40, 0, "train")[19:20]
    (scene,) = generate(number, SIDE)
    patches = torch.from_numpy(scene.picture.copy()).float().div(255)
    step = SIDE // PATCHES
    colours = patches.unflatten(0, (PATCHES, step)).unflatten(2, (PATCHES, step)).mean(dim=(1, 3)).flatten(0, 1)
    names = tuple(dict.fromkeys(thing.colour for thing in scene.things))
    words = torch.tensor([COLOURS[name] for name in names]) / 255
    things = torch.stack([patches[torch.from_numpy(thing.mask)].mean(dim=0) for thing in scene.things])
    recording = Recording(outputs={"pictures": [_png(scene.picture)]})
    for address, role, queries in (("words", "colours", words), ("things", "things", things)):
        recording.relations[address] = _compared(queries, colours)
        recording.roles[address] = (role, "patches")
    recording.label(
        patches=[Grid(PATCHES, PATCHES, SIDE, SIDE)],
        colours=[Text(names)],
        things=[Boxes(tuple(f"the {thing.colour} {thing.shape}" for thing in scene.things),
                      tuple(tuple(map(float, thing.box)) for thing in scene.things))],
    )  # fmt: skip
    first = recording.axes["things"][0].label(0)
    _saved(draw_overlay(recording, "things", query=0, title=f"Patches of the colour of {first}"), "overlay")
    _saved(draw_strip(recording, "words", head=1, title="Where each colour word looks"), "strip")
    rests = recording["things"].weights(example=0, head=1).argmax(dim=-1).numpy()
    path = np.stack([rests % PATCHES, rests // PATCHES], axis=1) * step + step / 2
    _saved(draw_scan_path(scene.picture, path, title="From thing to thing, the largest first"), "scan-path")


def _compared(queries: torch.Tensor, keys: torch.Tensor) -> DotRelation:
    """softmax(-sharpness |q - k|^2) as dot products: -|q - k|^2 = 2 q.k - |k|^2 and a constant of the query."""
    with_length = torch.cat([keys, (keys**2).sum(dim=1, keepdim=True)], dim=1)
    asked = torch.cat([2 * queries, -torch.ones(len(queries), 1)], dim=1)
    heads = torch.stack([sharpness * asked for sharpness in SHARPNESS])[None]
    return DotRelation(heads, with_length[None, None], 1.0)


def _png(picture: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _shrink(path: Path) -> None:
    """To a little over half: many soft edges make a large file."""
    with Image.open(path) as image:
        smaller = image.convert("RGB").resize((image.width * 4 // 7, image.height * 4 // 7), Image.Resampling.LANCZOS)
    smaller.save(path, optimize=True)


def _saved(figure: Figure, name: str) -> None:
    print(f"wrote {save(figure, HERE / f'{name}.png')}")


def _called(*arguments: object) -> None:
    if code := regard([str(argument) for argument in arguments]):
        raise SystemExit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "pictures")
