"""Generated pictures of coloured shapes on patterned grounds, with the place of every thing known."""

from regard.data.pictures.shapes.generating import Split, generate, scene_numbers
from regard.data.pictures.shapes.outlines import SHAPES
from regard.data.pictures.shapes.scene import COLOURS, GROUNDS, Scene, Thing

__all__ = ["COLOURS", "GROUNDS", "SHAPES", "Scene", "Split", "Thing", "generate", "scene_numbers"]
