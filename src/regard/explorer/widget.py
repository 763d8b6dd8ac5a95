"""`regard.show(recording)`: the explorer in a notebook cell."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from regard.core.errors import ConfigError
from regard.explorer import modules
from regard.explorer.packing import file_bytes
from regard.explorer.page import first_state, page
from regard.recording import Recording

try:
    import anywidget
    import traitlets
except ImportError:  # said when the widget is asked for
    anywidget = None  # type: ignore[assignment]


def show(
    recordings: Recording | Mapping[str, Recording],
    *,
    address: str | None = None,
    view: str | None = None,
    title: str = "",
) -> Any:
    """A widget for one recording, or for several with a name each; `address` and `view` are what is shown first.

    Where a notebook is turned into a page of text (as the documentation's is), it stands there as a page of its own,
    which works without any kernel.
    """
    if anywidget is None:
        raise ConfigError("The notebook widget needs anywidget: install Regard with its extra `notebook`.")
    named = [("Recording", recordings)] if isinstance(recordings, Recording) else list(recordings.items())
    if not named:
        raise ConfigError("There is nothing to show: no recording was given.")
    return _widget_class()(named, first_state(named, address, view), title)


_made: list[type] = []


def _widget_class() -> type:
    """Made when it is first needed, because anywidget is an extra."""
    if not _made:
        _made.append(_make())
    return _made[0]


def _make() -> type:
    class Explorer(anywidget.AnyWidget):
        """The same modules as in a page."""

        _esm = f"{modules.joined('widget.js').removesuffix(chr(10))}\nexport default {{ render }};\n"
        _css = modules.read("style.css")
        recordings = traitlets.List(traitlets.Bytes()).tag(sync=True)
        names = traitlets.List(traitlets.Unicode()).tag(sync=True)
        steps: Any = traitlets.List().tag(sync=True)
        first = traitlets.Dict().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)

        def __init__(self, named: Sequence[tuple[str, Recording]], first: dict[str, Any], title: str) -> None:
            super().__init__(
                recordings=[file_bytes(one) for _, one in named],
                names=[name for name, _ in named],
                steps=[one.outputs.get("step") for _, one in named],
                first=first,
                title=title,
            )
            self._named = named

        def _repr_mimebundle_(self, **options: Any) -> Any:
            """With a page for readers that run no widgets; it is made only for what fits into one."""
            made = super()._repr_mimebundle_(**options)
            bundle, metadata = made if isinstance(made, tuple) else (made, {})
            try:
                text = page(self._named, self.title or "Where the model looks", "", self.first)
            except ConfigError:
                return made
            frame = (
                f'<iframe srcdoc="{html.escape(text)}" title="Attention, to explore" '
                'style="width:100%;height:52rem;border:0" loading="lazy"></iframe>'
            )
            return {**(bundle or {}), "text/html": frame}, metadata

    return Explorer
