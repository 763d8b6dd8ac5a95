"""One call of an attention function: what it relates, and what it would return with another relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.core.context import context_in_groups, context_of
from regard.core.errors import EditError
from regard.core.grouped import GroupedRelation
from regard.core.relations import Relation
from regard.recording.value_norms import with_value_norms


@dataclass(frozen=True, eq=False)
class Attention:
    """`run` is what the library does; `read` tells the relation from that, and is detached from every graph."""

    run: Callable[[], Any]
    read: Callable[[Any], Relation]
    values: Callable[[], Tensor] | None = None
    """Laid out as the relation's keys, with their graph; None where the call does not hand them over."""
    put: Callable[[Tensor, Relation, Any], Any] | None = None
    """What to return for another context (batch, heads, queries, width), given what `run` has returned."""
    context: Callable[[Any], Tensor] | None = None
    """The context in what `run` has returned, laid out as the relation's queries, where it is there."""
    reweigh: Callable[[Tensor], Any] | None = None
    """What to return for other weights, where the call has nothing but weights."""
    dropout_rate: float = 0.0
    inside: str = ""
    """The part of the running layer that this is, if the layer runs as one operation."""
    values_at_hand: bool = True
    """Whether `values` costs nothing."""

    def relation(self, returned: Any) -> Relation:
        """What `read` tells, with the norms of the values where these are at hand."""
        relation = self.read(returned)
        if self.values is None or not self.values_at_hand:
            return relation
        return with_value_norms(relation, self.values().detach()[:, :, : relation.num_keys])


def edited(call: Attention, original: Relation, changed: Relation, returned: Any) -> Any:
    """What the call returns once its relation is `changed`; in windows, the relation is that over the whole grid."""
    grouped = original if isinstance(original, GroupedRelation) else None
    inside = changed.inner if isinstance(changed, GroupedRelation) else changed
    if call.values is not None and call.put is not None:
        if grouped is not None and not isinstance(changed, GroupedRelation):
            places = grouped.query_places, grouped.key_places
            context = context_in_groups(changed, call.values(), *places, call.dropout_rate)
        else:
            context = context_of(inside, call.values(), call.dropout_rate)
        return call.put(context, inside, returned)
    if call.reweigh is not None and (grouped is None or isinstance(changed, GroupedRelation)):
        return call.reweigh(inside.weights())
    raise EditError("it runs as one operation that cannot be given other weights")
