"""How a client's turn ended: its last generation, and the calls that are the client's to make."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db.models import BigIntegerField, IntegerField, QuerySet, UUIDField

from dialogs.api.requests import ClientCall
from dialogs.models import Generation, Message, ToolCall
from dominds.prepared import prepared


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a client's turn ended: its last generation, and the calls that are the client's to make."""

    generation: Generation | None
    calls: tuple[ClientCall, ...] = ()
    generations: int = 0
    level: str = ""


def outcome_of(leaf: Message) -> Outcome:
    """`leaf` is the newest message of the request: what came after it was made for this request."""
    made = _generations(leaf.dialog_id, leaf.turn, leaf.seq)
    if not made:
        return Outcome(generation=None)
    last = max(made, key=attrgetter("pk"))
    return outcome_with(last, generations=len(made), has_calls=last.message_id is not None)


def outcome_with(last: Generation, *, generations: int, has_calls: bool) -> Outcome:
    """The outcome of a turn of so many generations, of which this is the last."""
    asked = _clients_calls(last.message_id) if has_calls else ()
    calls = tuple(ClientCall(id=call.call_id, name=call.name, arguments=call.arguments) for call in asked)
    reading = getattr(last, "reading", None)
    return Outcome(generation=last, calls=calls, generations=generations, level=reading.level if reading else "")


@prepared(UUIDField(), IntegerField(), IntegerField())
def _generations(dialog_id: Any, turn: Any, seq: Any) -> QuerySet[Generation]:
    rows = Generation.objects.filter(dialog=dialog_id, turn=turn, prompt_leaf__seq__gte=seq)
    return rows.select_related("reading", "message").order_by()


@prepared(BigIntegerField())
def _clients_calls(message_id: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(message=message_id, status=ToolCall.Status.CLIENT).order_by("position")
