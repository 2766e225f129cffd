"""A client's own chore, made to fit its model's window: no dialog, no view, no model call. Reads the database.

What is compacted here is not kept anywhere: the client has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialogs.api.errors import ApiError, invalid_request
from dialogs.clients import ClientRequest
from dialogs.compacting.estimate import counter_of, overhead
from dialogs.compacting.guard import guard_of
from dialogs.models import ClientConversation, Dialog
from dialogs.services.client_turns import Target
from health.compaction.clamp import clamped
from health.compaction.messages import parse, render
from health.compaction.ports import Counter, Kit
from health.compaction.units import INSTRUCTING, Unit, total
from health.services import compact_messages
from health.tokens.counters import counter_for

Messages = Sequence[Mapping[str, Any]]
# Fewer have nothing to choose among: the longest is shortened.
LEAST_TO_COMPACT = 4
LEAST_TOKENS = 120
NOTE = "\n[… {count:,} characters left out here …]\n"


def fitted(messages: Messages, *, target: Target, request: ClientRequest) -> Messages:
    """The messages as they are where they fit, or nobody guards the model. Raises ApiError where they cannot fit."""
    dialog = Dialog(agent=target.agent, llm=target.llm, is_client_driven=True)
    dialog.client = ClientConversation(dialog=dialog, max_output_tokens=request.max_output_tokens)
    guard = guard_of(dialog)
    if guard is None or guard.off:
        return messages
    if guard.refused:
        raise _too_large(str(guard.refused))
    counter = counter_of(target.llm)
    room = guard.limit - guard.reserve - overhead(target.llm, request.tools, counter)
    if _tokens(messages, counter) <= room:
        return messages
    chosen = _compacted(messages, room, target.llm.model_id, counter) if len(messages) >= LEAST_TO_COMPACT else messages
    return _shortened(chosen, room, counter)


def _tokens(messages: Messages, counter: Counter) -> int:
    return total(parse(messages, counter=counter).units)


def _compacted(messages: Messages, room: int, model: str, counter: Counter) -> Messages:
    """The passages that matter. The room is counted as the engine counts by itself, without what a server reported."""
    ours, plain = _tokens(messages, counter), _tokens(messages, counter_for(model))
    limit = max(1, room * plain // ours)
    return compact_messages(messages, limit_tokens=limit, model=model, embedder="static").messages


def _shortened(messages: Messages, room: int, counter: Counter) -> Messages:
    """The longest texts to their beginnings and ends, one after another, until all fit; never the instructions."""
    kit, parsed = Kit(counter=counter), parse(messages, counter=counter)
    units = list(parsed.units)
    for _each in units:
        excess = total(units) - room
        if excess <= 0:
            return render(units, parsed.originals)
        at = max(range(len(units)), key=lambda place: _may_give(units[place]))
        units[at] = _short(units[at], excess, kit)
    if total(units) > room:
        needs, limit = f"≈{total(units):,}", f"{max(0, room):,}"
        raise _too_large(f"This task needs {needs} tokens, and there is room for {limit}. Its texts cannot be shorter.")
    return render(units, parsed.originals)


def _may_give(unit: Unit) -> int:
    return 0 if unit.role in INSTRUCTING else unit.estimated_tokens or 0


def _short(unit: Unit, excess: int, kit: Kit) -> Unit:
    size = kit.tokens(unit.content)
    content = clamped(unit.content, max_tokens=max(LEAST_TOKENS, size - excess), kit=kit, note=NOTE)
    (short,) = kit.counted([unit.saying(content)])
    return short


def _too_large(words: str) -> ApiError:
    return invalid_request(words, param="messages", code="context_compaction_failed")
