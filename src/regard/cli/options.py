"""From a config to command-line options and back.

Every field of a config becomes a dotted option with the config's own value as its default and the field's docstring as
its help. The options are plain dataclasses read by tyro; the values then go through the config's own checks, so that
a config from the command line and one from a file are refused with the same words.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, make_dataclass
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from pydantic import ValidationError

from regard.core.config import Config
from regard.core.errors import ConfigError, RegardError, nearest

T = TypeVar("T")
C = TypeVar("C", bound=Config)

HIDDEN = ("kind", "recipe", "expected")
"""Fields that say what a config is, and are not chosen by options."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What most commands take."""

    imports: Annotated[
        tyro.conf.UseAppendAction[tuple[Path, ...]], tyro.conf.arg(name="import", metavar="FILE.py")
    ] = ()
    """A Python file to import first, so that what it registers (a mechanism, a model, a recipe) is known."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the result as JSON, and nothing else on standard output."""


def parse(
    options: type[T], argv: Sequence[str], *, prog: str, description: str, sections: dict[str, Config] | None = None
) -> tuple[T, dict[str, Any]]:
    """The command's own options, and for each section the values of its config's fields.

    The section `""` has its config's fields without a prefix. On a mistake tyro explains it and exits with 2.
    """
    sections = sections or {}
    fields: list[tuple[str, Any, Any]] = [("command", Annotated[options, tyro.conf.arg(name="")], field())]
    for name, config in sections.items():
        mirror = mirrored(config)
        fields.append((name or "config", Annotated[mirror, tyro.conf.arg(name=name)], field(default_factory=mirror)))
    together = make_dataclass("Options", fields)
    parsed: Any = tyro.cli(together, args=list(argv), prog=f"regard {prog}", description=description)
    return parsed.command, {name: _values(getattr(parsed, name or "config")) for name in sections}


def mirrored(config: Config, hidden: Collection[str] = HIDDEN) -> Callable[[], Any]:
    """A dataclass with the fields of `config` and its values as defaults; its name and docstring are the config's."""
    fields: list[tuple[str, Any, Any]] = []
    for name, info in type(config).model_fields.items():
        value = getattr(config, name)
        text = " ".join((info.description or "").split())
        if name in hidden:
            continue
        if isinstance(value, Config):
            nested = mirrored(value, hidden)
            fields.append((name, nested, field(default_factory=nested)))
        else:
            fields.append((name, Annotated[info.annotation, tyro.conf.arg(help=text)], field(default=value)))
    namespace = {"__doc__": type(config).__doc__}
    return make_dataclass(type(config).__name__, fields, frozen=True, namespace=namespace)


def changed(config: C, values: dict[str, Any]) -> C:
    """The config with other values, checked as a whole; a value that does not fit is a `ConfigError`."""
    from regard.recipes.run import explain

    try:
        return type(config).model_validate(_merged(config.model_dump(), values))
    except ValidationError as error:
        raise ConfigError(f"These options do not fit: {explain(error)}.") from None


def differences(old: Config, new: Config, prefix: str = "") -> list[str]:
    """The dotted names of the fields in which two configs differ."""
    found = []
    for name in type(old).model_fields:
        before, after = getattr(old, name), getattr(new, name, None)
        if isinstance(before, Config) and isinstance(after, Config) and type(before) is type(after):
            found += differences(before, after, f"{prefix}{name}.")
        elif before != after:
            found.append(f"{prefix}{name}")
    return found


def first_argument(
    argv: list[str], what: str, prog: str, options: type[Any] | None = None
) -> tuple[str | None, list[str]]:
    """Splits off the first positional argument, which decides what options there are; None where help is wanted.

    Where an option stands in its place, `options` (the command's own) tells whether that was a slip of the pen.
    """
    if argv and not argv[0].startswith("-"):
        return argv[0], argv[1:]
    if {"-h", "--help"} & set(argv):
        return None, argv
    own = [f"--{each.name}" for each in dataclasses.fields(options)] if options is not None else []
    given = argv[0].partition("=")[0] if argv else ""
    meant = nearest(given, own) if given and given not in own else None
    raise ConfigError(
        f"Name the {what} first: `regard {prog} {what.upper()} [options]`; see `regard {prog} --help`."
        + (f" There is no option {given}; did you mean {meant}?" if meant else "")
    )


def import_plugins(argv: Sequence[str]) -> None:
    """Imports what installed packages offer as `regard.plugins`, and the files behind `--import`."""
    for plugin in entry_points(group="regard.plugins"):
        try:
            plugin.load()
        except Exception as error:
            print(f"regard: the plugin {plugin.name} ({plugin.value}) cannot be loaded: {error!r}", file=sys.stderr)
    for place, argument in enumerate(argv):
        if argument == "--":
            break
        if argument == "--import" and place + 1 < len(argv):
            import_file(Path(argv[place + 1]))
        elif argument.startswith("--import="):
            import_file(Path(argument.removeprefix("--import=")))


def import_file(path: Path) -> None:
    """Runs a user's file as a module; a mistake in it is an error that names the line."""
    if not path.is_file():
        raise ConfigError(f"There is no file {path} to import.")
    digest = sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"regard_import_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file; its name has to end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except RegardError as error:
        raise ConfigError(f"{path} cannot be imported: {error}") from error
    except Exception as error:
        if isinstance(error, SyntaxError):
            line = error.lineno
        else:
            own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = own[-1] if own else None
        place = f"{path}, line {line}" if line else str(path)
        raise ConfigError(f"{place}: {type(error).__name__}: {error}.") from error


def _values(instance: Any) -> dict[str, Any]:
    """Nested dataclasses as nested dictionaries; other values as they are."""
    return {
        name: _values(value) if hasattr(value, "__dataclass_fields__") else value
        for name, value in ((name, getattr(instance, name)) for name in instance.__dataclass_fields__)
    }


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for name, value in new.items():
        merged[name] = (
            _merged(old[name], value) if isinstance(value, dict) and isinstance(old.get(name), dict) else value
        )
    return merged
