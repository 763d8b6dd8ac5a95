"""Recipes: functions that return the full config of a run. Importing this package fills the registry."""

from regard.recipes import digits, embedded, multi30k, pictures
from regard.recipes.config import RunConfig, recipes, run_kinds

__all__ = ["RunConfig", "digits", "embedded", "multi30k", "pictures", "recipes", "run_kinds"]
