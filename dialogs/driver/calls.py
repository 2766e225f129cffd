"""Prepares a provider call: builds its request, records it, and adds what the continuation of a cut answer needs.

An LLM that is known to support prefill continues the assistant message at the end of the request. Any other is asked to
continue by a stored user message. Either way the end of the cut answer is sent, even if the view has compacted it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from dialogs.context.border import Context, chat_request, instructions_of
from dialogs.context.estimate import Sizing, beside_an_answer
from dialogs.context.reads import stable_prefix
from dialogs.driver.guarding import LoadedDialog
from dialogs.driver.repetition import RepetitionFilter
from dialogs.driver.streaming import Call
from dialogs.driver.watch import Watch
from dialogs.llms.guard import Guard
from dialogs.llms.reads import max_output_of, settings_for
from dialogs.models import Generation, Message
from dialogs.models.llm import Prefill
from dialogs.models.message import MessageOrigin
from dialogs.providers.base import ChatRequest
from dialogs.transcript import model_view
from dialogs.transcript.model_view import NOT_STORED, Entry, shortened_ids
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Sent
from dialogs.turns.writes.lease import Claim

logger = logging.getLogger(__name__)
# How many times a request is read again because the dialog changed before its call was recorded.
MOST_CHANGES = 3


def begin(claim: Claim, loaded: LoadedDialog, *, attempt: int) -> Call:
    """Read the request, unless it is prepared, and record the call. If the dialog has changed since it was read, for
    example because a person typed, it is read again."""

    def recorded(sent: Sent) -> Generation:
        return generations.begin(claim, attempt=attempt, sent=sent, known=loaded.dialog)

    for _change in range(MOST_CHANGES):
        try:
            call = _begun(loaded, recorded, attempt=attempt)
            break
        except generations.Outdated:
            loaded = LoadedDialog(dialog_to_drive(claim.dialog_id))
    else:
        raise generations.Outdated
    if call.sizing.is_counted and (share := stable_prefix(call.generation.course_id)) is not None:
        logger.info("Dialog %s: ≈%d %% of the request begins as the last one did", claim.dialog_id, 100 * share)
    return call


def begin_taken(claim: Claim, loaded: LoadedDialog) -> Call:
    """Record the first try in the transaction that has just claimed the dialog."""

    def recorded(sent: Sent) -> Generation:
        number = loaded.prepared.number if loaded.prepared else None
        return generations.add_call(loaded.dialog, claim, attempt=1, sent=sent, number=number)

    return _begun(loaded, recorded, attempt=1)


def _begun(loaded: LoadedDialog, recorded: Callable[[Sent], Generation], *, attempt: int) -> Call:
    dialog, guard, sizing = loaded.dialog, loaded.guard, loaded.sizing.to_send()
    context = _urged(continuing(sizing.context), attempt=attempt)
    if context is not sizing.context:
        sizing = Sizing(context, sizing.tools)
    request = _prepared_request(loaded, context) or chat_request(context, tools=sizing.tools)
    request = fitted(request_to_go_on(context, request), sizing, guard)
    generation = recorded(_sent(sizing, request))
    # Decrypting the key takes longer than reading its row.
    service = loaded.prepared.settings if loaded.prepared else settings_for(dialog.llm.provider)
    watch = _watch(sizing, guard)
    return Call(
        generation, request, service, sizing, watch, dialog.is_client_driven, _repetition_filter(context, request)
    )


def _prepared_request(loaded: LoadedDialog, context: Context) -> ChatRequest | None:
    """The prepared request, if nothing was added to its dialog since."""
    return loaded.prepared.request if loaded.prepared and context is loaded.sizing.context else None


def _urged(context: Context, *, attempt: int) -> Context:
    """The request; after an empty answer, with a line that asks for one: the same request would get the same answer."""
    if attempt == 1 or not generations.was_empty(context.branch[-1]):
        return context
    return replace(context, urge=prompt("empty", language=context.dialog.work_language))


def _repetition_filter(context: Context, request: ChatRequest) -> RepetitionFilter | None:
    """The filter that drops repetitions from the continuation of a cut answer."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return None
    sent = request.messages[-1].content if request.continues else None
    return RepetitionFilter("".join(piece.content for piece in pieces), sent=sent)


def fitted(request: ChatRequest, sizing: Sizing, guard: Guard | None) -> ChatRequest:
    """The request; if the prompt fits the window, but not with the answer's maximum, with a lower maximum."""
    asked, window = request.max_output_tokens, guard.window if guard else None
    if guard is None or asked is None or window is None or sizing.is_within(window - asked):
        return request
    left = window - _prompt_at_most(sizing)
    return request if asked <= left else replace(request, max_output_tokens=max(guard.answer, left))


def _prompt_at_most(sizing: Sizing) -> int:
    """The prompt's tokens as the server counted them when it refused this request; else estimate and margin."""
    named = generations.prompt_named_by_refusal(sizing.context.dialog)
    if named is not None:
        return named
    return beside_an_answer(sizing.estimate.tokens, margin=sizing.estimate.margin)


def _watch(sizing: Sizing, guard: Guard | None) -> Watch | None:
    """The Watch of the answer's size; None if the window is unknown or compaction is off."""
    if guard is None or guard.off or guard.window is None or sizing.context.dialog.current_leaf is None:
        return None
    return Watch(sizing, guard, guard.window)


def _sent(sizing: Sizing, request: ChatRequest) -> Sent:
    """What the record of the call stores, so that the request can be shown later."""
    context, asked = sizing.context, max_output_of(sizing.context.dialog)
    return Sent(
        message_ids=tuple(message.id for message in context.sent if message.id != NOT_STORED),
        texts={
            "instructions": instructions_of(context),
            "taskdoc": context.beginning.first.taskdoc,
            "reminders": "\n\n".join(f"{one.number}. {one.text}" for one in context.beginning.first.reminders),
            "tools": json.dumps(request.tools, ensure_ascii=False, sort_keys=True) if request.tools else "",
            "notice": context.notice,
            "urge": context.urge,
            "task": context.task,
            "changed": context.beginning.changed,
            "own": "".join(message.content for message in context.sent if message.id == NOT_STORED),
            "begins": "" if context.client else context.beginning.kept,
        },
        options={"max_output_tokens": request.max_output_tokens, **request.options},
        view=context.run_id,
        kept=tuple(chain.from_iterable(context.kept)),
        shortened=shortened_ids(context.client) if context.client and not context.run_id else (),
        estimated_tokens=sizing.request_estimate.tokens if sizing.is_counted else None,
        asked_tokens=asked if asked != request.max_output_tokens else None,
    )


# How many characters of the cut answer's end are sent, even if the view has compacted it.
TAIL_CHARS = 800
LEFT_OUT = "[…] "


def cut_answer(branch: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that hold the cut answer to continue, oldest first; empty if there is none."""
    at = branch[-1] if branch else None
    if at is None or at.origin != MessageOrigin.CONTINUATION:
        return ()
    said = {message.pk: message for message in branch}
    pieces: list[Message] = []
    while at is not None and at.origin == MessageOrigin.CONTINUATION and (cut := said.get(at.parent_id or 0)):
        pieces.append(cut)
        at = said.get(cut.parent_id or 0)
    return tuple(reversed(pieces))


def continuing(context: Context) -> Context:
    """The context, changed to ask for the rest of the answer if that was cut."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return context
    asking, last = context.branch[-1], pieces[-1]
    view = [entry for entry in context.view or model_view.as_said(context.branch) if entry.message_id != asking.pk]
    view = _ending_with(pieces, [entry for entry in view if entry.message_id != last.pk], _seen(view, last))
    if context.dialog.llm.prefill != Prefill.CONTINUES:
        view.append(Entry(message_id=asking.pk))
    return replace(context, view=tuple(view))


def _seen(view: Sequence[Entry], message: Message) -> Entry | None:
    return next((entry for entry in view if entry.message_id == message.pk), None)


def _ending_with(pieces: Sequence[Message], before: list[Entry], seen: Entry | None) -> list[Entry]:
    """The last piece at the end of the view, whole or shortened, but with its end in full."""
    whole = "".join(piece.content for piece in pieces)
    texts = {piece.pk: piece.content for piece in pieces[:-1]}
    last = pieces[-1]
    own = last.content if seen is None or seen.content is None else seen.content
    if seen is not None and (_told_before(before, texts) + own).endswith(whole[-TAIL_CHARS:]):
        return [*before, seen]
    kept = own + "\n" if seen is not None and seen.content is not None else ""
    return [*before, Entry(message_id=last.pk, content=kept + LEFT_OUT + whole[-TAIL_CHARS:])]


def _told_before(entries: Sequence[Entry], texts: Mapping[int, str]) -> str:
    """What the view has of the earlier pieces, directly before the last one."""
    told = ""
    for entry in reversed(entries):
        if entry.message_id is None or entry.message_id not in texts:
            break
        told = (texts[entry.message_id] if entry.content is None else entry.content) + told
    return told


def request_to_go_on(context: Context, request: ChatRequest) -> ChatRequest:
    """The request of a `continuing` context, marked if the model supports prefill.

    Trailing white space is removed: some services refuse it, and models were not trained on it.
    """
    messages = request.messages
    goes_on = context.dialog.llm.prefill == Prefill.CONTINUES and cut_answer(context.branch)
    if not goes_on or not messages or messages[-1].role != "assistant":
        return request
    last = replace(messages[-1], content=messages[-1].content.rstrip())
    return replace(request, messages=(*messages[:-1], last), continues=True)
