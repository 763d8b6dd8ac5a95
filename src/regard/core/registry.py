"""Names for things that can be chosen from a command line.

A registry is also the test matrix: whatever is registered, by us or by a user, is run through the contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from regard.core.errors import ConfigError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """An ordered mapping from a name to a class or function, filled by a decorator."""

    def __init__(self, kind: str, hint: str = "") -> None:
        self.kind = kind
        self.hint = hint
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: `@mechanisms.register("cosine")`."""

        def add(entry: T) -> T:
            known = self._entries.get(name)
            if known is not None and _origin(known) != _origin(entry):
                raise ConfigError(
                    f"Two things want to be the {self.kind} {name!r}: {_origin(known)} and {_origin(entry)}."
                )
            self._entries[name] = entry
            return entry

        return add

    def remove(self, name: str) -> None:
        """Forget a name; for tests that register something of their own."""
        del self._entries[name]

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._entries, self.hint) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[str, T]]:
        return iter(self._entries.items())


def _origin(entry: object) -> str:
    """Where an entry was defined; importing the same file twice is not a conflict."""
    return f"{getattr(entry, '__module__', '?')}.{getattr(entry, '__qualname__', entry)}"
