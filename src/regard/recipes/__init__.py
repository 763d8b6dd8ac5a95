"""Recipes: functions that return the full config of a run. Importing this package fills the registry."""

from regard.recipes import cifar, digits, embedded, multi30k, pictures
from regard.recipes.config import RunConfig, recipes, run_kinds

__all__ = ["RunConfig", "cifar", "digits", "embedded", "multi30k", "pictures", "recipes", "run_kinds"]
