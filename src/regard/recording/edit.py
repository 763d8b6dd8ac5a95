"""`edit`: changes where a model looks while a context is open, and nothing else.

    with regard.edit(model, {"decoder.2.cross": regard.edits.mute(3), "encoder.*": regard.edits.uniform()}):
        model(source, target)

    regard.edit(model, {"encoder.*": regard.edits.keep(0)})(model)(source, target)      # for one call

Contexts may be nested: the inner one changes what the outer one left. Edits apply in the thread or task that opened
them only. When the block ends well, an edit that never took effect is an error that names it; when it raises, the error
goes on as it is. What is recorded meanwhile is the relation as it was edited.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from torch import nn

from regard.core.errors import EditError, nearest
from regard.core.relations import Relation
from regard.core.steps import current_step
from regard.core.tap import Tap, editing, open_editing
from regard.core.tap import taps as taps_of
from regard.recording.compiled import uncompiled
from regard.recording.edited import planned
from regard.recording.edits import Edit, HeadEdit, Place, RowEdit, checked_heads
from regard.recording.foreign import reaching_foreign, taps_by_address
from regard.recording.head_plan import HeadPlan


@dataclass(frozen=True, eq=False)
class _Entry:
    """One edit at one tap; `done` is shared by all calls and says whether it ever took effect."""

    address: str
    edit: Edit
    done: list[bool]

    def mark(self, shown: bool) -> None:
        if not shown:
            self.done[0] = True


class _Edits:
    """What is open at each tap, outermost first."""

    def __init__(self, entries: Mapping[Tap, Sequence[_Entry]]) -> None:
        self.entries = entries

    def concerns(self, tap: Tap) -> bool:
        return tap in self.entries

    def change(self, tap: Tap, relation: Relation, *, shown: bool) -> Relation:
        """Edits in their order; those of whole heads that follow each other are one plan."""
        original, changed, plan = relation, relation, HeadPlan.unchanged(relation.heads)
        for entry in self.entries.get(tap, ()):
            if isinstance(entry.edit, HeadEdit):
                plan = entry.edit.plan(plan, checked_heads(entry.edit.heads, relation.heads, entry.address))
                entry.mark(shown)
                continue
            assert isinstance(entry.edit, RowEdit)
            changed, plan = _after(changed, original, plan), HeadPlan.unchanged(relation.heads)
            changed, touched = entry.edit.rows(changed, original, Place(entry.address, tap, current_step()))
            if touched:
                entry.mark(shown)
        return _after(changed, original, plan)


@contextmanager
def edit(model: nn.Module, edits: Mapping[str, Edit | Sequence[Edit]]) -> Iterator[None]:
    """While the context is open, taps whose addresses match are changed: by an edit each, or by several in order."""
    own = _entries(model, edits)
    outer = open_editing()
    entries = dict(outer.entries) if isinstance(outer, _Edits) else {}
    for tap, added in own.items():
        entries[tap] = (*entries.get(tap, ()), *added)
    with ExitStack() as stack:
        stack.enter_context(uncompiled(model))
        stack.enter_context(editing(_Edits(entries)))
        if not own.keys() <= set(taps_of(model).values()):
            stack.enter_context(reaching_foreign(model))
        yield
    idle = [entry for added in own.values() for entry in added if not entry.done[0]]
    if idle:
        named = ", ".join(f"{entry.edit.name} at {entry.address}" for entry in idle)
        raise EditError(
            f"These edits of {type(model).__name__} never took effect: {named}. Either the model was not called inside "
            f"the block (or in another thread), or not the part or the position that they name."
        )


def _after(relation: Relation, original: Relation, plan: HeadPlan) -> Relation:
    return relation if plan == HeadPlan.unchanged(relation.heads) else planned(relation, original, plan)


def _entries(model: nn.Module, edits: Mapping[str, Edit | Sequence[Edit]]) -> dict[Tap, list[_Entry]]:
    entries: dict[Tap, list[_Entry]] = {}
    for pattern, given in edits.items():
        known = {**taps_of(model), **taps_by_address(model, pattern)}
        matching = [address for address in known if fnmatch.fnmatchcase(address, pattern)]
        if not matching:
            close = nearest(pattern, known)
            meant = f" Did you mean {close!r}?" if close else ""
            there = ", ".join(known) or "none: it has no attention that Regard knows"
            raise EditError(f"No tap of {type(model).__name__} matches {pattern!r}.{meant} Its taps: {there}.")
        for address in matching:
            for change in given if isinstance(given, list | tuple) else [given]:
                if not isinstance(change, Edit):
                    raise EditError(f"What is to be changed at {pattern!r} is no edit of `regard.edits`: {change!r}.")
                entries.setdefault(known[address], []).append(_Entry(address, change, [False]))
    return entries
