"""A client's own chore, made to fit its model's window: no dialog, no view, no model call. Reads the database.

What is compacted here is not kept anywhere: the client has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialogs.api.errors import ApiError, invalid_request
from dialogs.api.requests import ClientRequest
from dialogs.api.writes.client_turns import Target
from dialogs.context.estimate import beside_an_answer, overhead, surely_within
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of, room_of
from dialogs.models import ClientConversation, Dialog
from health.compaction.reading.messages import parse, render
from health.compaction.terms.ports import Counter, Kit
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import INSTRUCTING, Unit, rounds, total
from health.compaction.trimming.clamp import HEAD_SHARE, clamped
from health.services import compact_messages
from health.tokens.corrected import likely_of
from health.tokens.counters import counter_for

Messages = Sequence[Mapping[str, Any]]
# Fewer have nothing to choose among: the longest is shortened.
LEAST_TO_COMPACT = 4
LEAST_TOKENS = 120
# Of a text that is to be summarised nearly all that is kept is its beginning; its end may say what to do.
OLDEST_SHARE = 0.95
# How clients begin the summary that they have put in place of a history. Decides only what gets room.
SUMMARY_BEGINS = (
    "i spoke to you previously about",
    "this session is being continued from a previous",
    "the conversation history before this point was compacted",
    "this is a summary of",
    "here is a summary of",
    "summary of the conversation",
    "summary of our conversation",
    "conversation summary",
    "<summary>",
)
NOTE = "\n[… {count:,} characters left out here …]\n"


def fitted(messages: Messages, target: Target, request: ClientRequest, *, summarises: bool) -> Messages:
    """The messages as they are where they fit, or nobody guards the model. Raises ApiError where they cannot fit.

    `summarises`: what is answered will replace them in the client's history.
    """
    dialog = _dialog(target, request)
    guard = guard_of(dialog)
    if guard is None or (guard.off and not guard.cuts_silently):
        return messages
    if guard.refused:
        raise _too_large(str(guard.refused))
    counter = counter_of(target.llm)
    tokens, besides = _tokens(messages, counter), overhead(target.llm, request.tools, counter)
    if guard.off:
        return _uncut(messages, tokens + besides, room_of(dialog) or guard.room)
    # No report of a chore is kept, and none is asked again: all of it must fit however the model counts.
    room, most = surely_within(guard.room, counter) - besides, guard.room - besides
    if tokens <= room:
        return messages
    if summarises:
        return _shortened(_oldest(messages, room, counter), room, counter, most=most, head_share=OLDEST_SHARE)
    chosen = _compacted(messages, room, target.llm.model_id, counter) if len(messages) >= LEAST_TO_COMPACT else messages
    return _shortened(chosen, room, counter, most=most)


def answer_beside(messages: Messages, target: Target, request: ClientRequest) -> int | None:
    """The answer's maximum: what was asked for, lowered where only prompt and answer together are too long."""
    guard, asked = guard_of(_dialog(target, request)), request.max_output_tokens
    if guard is None or guard.window is None or asked is None:
        return asked
    counter = counter_of(target.llm)
    tokens, likely = (_prompt(messages, target, request, one) for one in (counter, likely_of(counter)))
    return min(asked, max(guard.answer, guard.window - beside_an_answer(tokens, margin=tokens - likely)))


def _dialog(target: Target, request: ClientRequest) -> Dialog:
    """One that nobody stores, to ask the guard with."""
    dialog = Dialog(agent=target.agent, llm=target.llm, is_client_driven=True)
    dialog.client = ClientConversation(dialog=dialog, max_output_tokens=request.max_output_tokens)
    return dialog


def _prompt(messages: Messages, target: Target, request: ClientRequest, counter: Counter) -> int:
    return _tokens(messages, counter) + overhead(target.llm, request.tools, counter)


def _uncut(messages: Messages, tokens: int, room: int) -> Messages:
    """Where compaction is off and the server would cut. Raises ApiError for what does not fit."""
    if tokens > room:
        why = Reason(Why.WOULD_BE_CUT, {"tokens": tokens, "limit": room})
        raise invalid_request(str(why), param="messages", code="context_length_exceeded")
    return messages


def _tokens(messages: Messages, counter: Counter) -> int:
    return total(parse(messages, counter=counter).units)


def _compacted(messages: Messages, room: int, model: str, counter: Counter) -> Messages:
    """The passages that matter. The room is counted as the engine counts by itself, without what a server reported."""
    ours, plain = _tokens(messages, counter), _tokens(messages, counter_for(model))
    limit = max(1, room * plain // ours)
    return compact_messages(messages, limit_tokens=limit, model=model, embedder="static").messages


def _oldest(messages: Messages, room: int, counter: Counter) -> Messages:
    """What the client is about to replace: the oldest text first, as what is newest stays in its history anyway.

    Its instructions, its last words and its last summary stay. What that summary covers comes after all else.
    """
    kit, parsed = Kit(counter=counter), parse(messages, counter=counter)
    cuts = rounds(parsed.units)
    summary = max((at for at, cut in enumerate(cuts[:-1]) if _is_summary(cut[0])), default=-1)
    stays = [at for at, cut in enumerate(cuts) if cut[0].role in INSTRUCTING or at in (summary, len(cuts) - 1)]
    found: dict[int, Sequence[Unit]] = {at: cuts[at] for at in stays}
    left = room - sum(map(total, found.values()))
    for at in (one for one in (*range(summary + 1, len(cuts)), *range(summary)) if one not in stays):
        found[at] = _within(cuts[at], left, kit)
        if found[at] != cuts[at]:
            break
        left -= total(cuts[at])
    return render([unit for at in sorted(found) for unit in found[at]], parsed.originals)


def _is_summary(unit: Unit) -> bool:
    return unit.content.lstrip(" #*\n").lower().startswith(SUMMARY_BEGINS)


def _within(cut: Sequence[Unit], room: int, kit: Kit) -> Sequence[Unit]:
    """A cut as it is where it fits; else the beginning of a long text, and nothing of calls with their results."""
    if total(cut) <= room:
        return cut
    excess, first = total(cut) - room, cut[0]
    is_text = len(cut) == 1 and kit.tokens(first.content) - excess >= LEAST_TOKENS
    return (_short(first, excess, kit, OLDEST_SHARE),) if is_text else ()


def _shortened(
    messages: Messages, room: int, counter: Counter, *, most: int, head_share: float = HEAD_SHARE
) -> Messages:
    """The longest texts to their beginnings and ends, one after another, until all fit; never the instructions.

    Raises ApiError where what cannot be shorter is more than `most`.
    """
    kit, parsed = Kit(counter=counter), parse(messages, counter=counter)
    units = list(parsed.units)
    for _each in units:
        excess = total(units) - room
        if excess <= 0:
            return render(units, parsed.originals)
        at = max(range(len(units)), key=lambda place: _may_give(units[place]))
        units[at] = _short(units[at], excess, kit, head_share)
    if total(units) > most:
        needs, limit = f"≈{total(units):,}", f"{max(0, most):,}"
        raise _too_large(f"This task needs {needs} tokens, and there is room for {limit}. Its texts cannot be shorter.")
    return render(units, parsed.originals)


def _may_give(unit: Unit) -> int:
    return 0 if unit.role in INSTRUCTING else unit.estimated_tokens or 0


def _short(unit: Unit, excess: int, kit: Kit, head_share: float) -> Unit:
    least = max(LEAST_TOKENS, kit.tokens(unit.content) - excess)
    content = clamped(unit.content, max_tokens=least, kit=kit, note=NOTE, head_share=head_share)
    (short,) = kit.counted([unit.saying(content)])
    return short


def _too_large(words: str) -> ApiError:
    return invalid_request(words, param="messages", code="context_compaction_failed")
