"""Build, train and look inside attention.

    import regard

    with regard.record(model) as recording:         # any model of ours
        model(source, target)
    recording["decoder.2.cross"].weights(head=3)

    model = regard.load_pretrained("downloads/vit")  # saved by timm, transformers or torchvision

    run = regard.open_run("runs/rnnsearch/...")     # what `regard train` left behind
    run.translate(["The cat sleeps ."])

Nothing is loaded before it is asked for: `import regard` is instant, and torch comes with the first name used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard import attention, core, data, explorer, models, plots, recipes, recording, tasks, training
    from regard.attention import mechanisms
    from regard.pretrained.load import load_pretrained
    from regard.recipes.run import Run, open_run
    from regard.recording import Recording, edit, edits, film, importance, record

    __version__: str

__all__ = [
    "Recording",
    "Run",
    "__version__",
    "attention",
    "core",
    "data",
    "edit",
    "edits",
    "explorer",
    "film",
    "importance",
    "load_pretrained",
    "mechanisms",
    "models",
    "open_run",
    "plots",
    "recipes",
    "record",
    "recording",
    "show",
    "tasks",
    "training",
]

_HOMES = {
    "Recording": "regard.recording",
    "Run": "regard.recipes.run",
    "edit": "regard.recording",
    "edits": "regard.recording",
    "film": "regard.recording",
    "importance": "regard.recording",
    "load_pretrained": "regard.pretrained.load",
    "mechanisms": "regard.attention",
    "open_run": "regard.recipes.run",
    "record": "regard.recording",
    "show": "regard.explorer.widget",
}
"""Where each public name that is no room lives."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("regard")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in __all__:
        value = importlib.import_module(f"regard.{name}")
    else:
        raise AttributeError(f"regard has no {name!r}; it has {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
