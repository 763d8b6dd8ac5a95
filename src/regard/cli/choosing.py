"""From a command line to the config of a run: a recipe, what its options change, and shorthands for them."""

from __future__ import annotations

from typing import Any, TypeVar

from regard.cli.options import Shared, changed, differences, first_argument, import_plugins, parse
from regard.cli.output import say, table
from regard.core.errors import ConfigError
from regard.recipes import RunConfig, recipes

S = TypeVar("S", bound=Shared)


def parse_recipe(
    options: type[S], argv: list[str], *, prog: str, description: str
) -> tuple[S, RunConfig, dict[str, Any]]:
    """For commands that start with a recipe: their options, the recipe's config, and the values of its fields."""
    import_plugins(argv)
    name, rest = first_argument(argv, "recipe", prog, options)
    if name is None:
        listed = table([(known, (recipe.__doc__ or "").strip()) for known, recipe in recipes.items()], indent="  ")
        help_text = f"{description}\n\nrecipes (each has its own options: `regard {prog} RECIPE --help`):\n{listed}"
        parse(options, rest, prog=f"{prog} RECIPE", description=help_text)
        raise AssertionError("--help ends the program")
    config = recipes[name]()
    chosen, sections = parse(options, rest, prog=f"{prog} {name}", description=description, sections={"": config})
    return chosen, config, sections[""]


def chosen_config(recipe: RunConfig, values: dict[str, Any], attention: str | None = None) -> RunConfig:
    """The recipe's config with the options' values, and with what follows from them."""
    if attention is not None:
        values = {**values, "model": {**values["model"], "attention": _checked_attention(recipe, attention)}}
    config = changed(recipe, values)
    source = getattr(config.data, "source", None)
    config = config.with_source()
    if (named := getattr(config.data, "source", None)) != source:
        say(f"A file was named, so --data.source is {named} and no longer {source}.")
    # What a recipe expects it expects of itself as it stands.
    if differences(recipe, config):
        config = config.model_copy(update={"expected": {}})
    return config.absolute()


def _checked_attention(recipe: RunConfig, attention: str) -> str:
    if "attention" not in type(recipe.model).model_fields:
        having = [name for name, make in recipes.items() if "attention" in type(make().model).model_fields]
        raise ConfigError(
            f"--attention means nothing to {recipe.recipe!r}: its model, {recipe.model.kind!r}, has no attention. "
            f"Recipes that have it: {', '.join(having)}."
        )
    return attention
