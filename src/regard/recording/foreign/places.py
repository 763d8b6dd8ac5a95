"""What the positions of a foreign model's maps are, as far as the call itself shows it.

A map over as many positions as the last convolution had places is over a picture, and so is one in windows; a class
token and others come first and have the names that the model's parameters give them. The rest is named by the address:
"source" and "target" where there is an encoder and a decoder, "tokens" otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from regard.core.axes import Grid
from regard.core.relations import Relation

_CROSS = ("cross", "encoder_attn", "encdec", "multihead_attn", "encoder_decoder")
_NO_PICTURE = ("text", "language", "decoder")


@dataclass
class Picture:
    """The picture that a model was given, and the grid that its last convolution has made of it."""

    height: int
    width: int
    rows: int
    columns: int

    def grid(self, rows: int, columns: int, extras: tuple[str, ...]) -> Grid:
        """Cells of a coarser grid are larger by a power of two; the last ones may lie beyond the picture's edge."""
        if (rows, columns) == (self.rows, self.columns):
            return Grid(rows, columns, self.height, self.width, extras)
        factor = 1
        while factor * rows < self.rows:
            factor *= 2
        height, width = self.height / self.rows * factor * rows, self.width / self.columns * factor * columns
        return Grid(rows, columns, round(height), round(width), extras)

    def positions(self, count: int, names: tuple[str, ...]) -> Grid | None:
        """The grid with its extras, if so many positions can be that and all that is beside the grid has a name.

        Tokens of another kind may stand behind the patches (the detection tokens of YOLOS), so these are not guessed.
        """
        extras = count - self.rows * self.columns
        if extras not in (0, len(names)):
            return None
        return self.grid(self.rows, self.columns, names if extras else ())


def seen(picture: Picture | None, pixels: Tensor, features: Tensor) -> Picture | None:
    """After a convolution: the grid is its output's, the size that of the first one's input."""
    if pixels.dim() != 4 or features.dim() != 4:
        return picture
    height, width = (pixels.shape[2], pixels.shape[3]) if picture is None else (picture.height, picture.width)
    return Picture(height, width, features.shape[2], features.shape[3])


def names_of_extras(model: nn.Module) -> tuple[str, ...]:
    """Class token, distillation token and registers, in this order, where the model has such parameters."""
    names: list[str] = []
    for parts, name in ((("cls_token", "class_token", "class_embedding"), "class"), (("dist",), "distillation")):
        if any(part in path.split(".")[-1] for path, _ in _tokens(model) for part in parts):
            names.append(name)
    for path, tensor in _tokens(model):
        if "reg" in path.split(".")[-1]:
            names += [f"register {number}" for number in range(1, tensor.shape[1] + 1)]
    return tuple(names)


def _tokens(model: nn.Module) -> Iterable[tuple[str, nn.Parameter]]:
    """Parameters that are tokens: (1, tokens, width), or (width)."""
    for path, parameter in model.named_parameters():
        if "token" in path.split(".")[-1] or path.endswith("class_embedding"):
            yield path, parameter


def all_roles(
    relations: Mapping[str, Relation], grids: Mapping[str, Grid], paths: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """What queries and keys of each map are: "image", or "stage1" and so on where a picture has several grids."""
    distinct = list(dict.fromkeys(grids.values()))
    pictures = {grid: "image" if len(distinct) == 1 else f"stage{number}" for number, grid in enumerate(distinct, 1)}
    lengths = {len(grid): name for grid, name in pictures.items()}
    sides = two_sided(paths)
    found = {}
    for address, relation in relations.items():
        if address in grids:
            name = pictures[grids[address]]
            found[address] = (name, name)
            continue
        queries, keys = roles(address, relation.num_queries, relation.num_keys, sides)
        found[address] = (queries, lengths.get(relation.num_keys, keys) if queries != keys else keys)
    return found


def two_sided(paths: Iterable[str]) -> bool:
    """Whether a model with layers at these paths has an encoder and a decoder."""
    return {"encoder", "decoder"} <= {step for path in paths for step in path.lower().split(".")}


def roles(address: str, num_queries: int, num_keys: int, has_two_sides: bool) -> tuple[str, str]:
    """What to call the queries and the keys of a map that is not over a picture."""
    steps = address.lower()
    cross = any(part in steps for part in _CROSS)
    if has_two_sides:
        side = "target" if "decoder" in steps or cross else "source"
        return ("target", "source") if cross else (side, side)
    if cross or num_queries != num_keys:
        return "queries", "keys"
    return "tokens", "tokens"


def may_be_picture(address: str) -> bool:
    return not any(part in address.lower() for part in _NO_PICTURE)
