"""Recipes: functions that return the full config of a run. Importing this package fills the registry."""

from regard.recipes import embedded, multi30k, pictures
from regard.recipes.config import RunConfig, recipes, run_kinds

__all__ = ["RunConfig", "embedded", "multi30k", "pictures", "recipes", "run_kinds"]
