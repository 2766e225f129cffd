"""A call of a provider before it is made: what is sent, the record of it, and how a cut answer is gone on with.

Where the LLM is known to go on with an answer that ends the request, that is all it is sent. Any other is asked to, by
the message that was stored for it. In both cases the end of the answer stands before it, however much was compacted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from dialogs.context.border import Context, chat_request, instructions_of
from dialogs.context.estimate import Sizing, beside_an_answer
from dialogs.context.reads.sent import stable_prefix
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
from dialogs.transcript.model_view import Entry
from dialogs.transcript.trimmed_history import NOT_STORED, shortened_ids
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Sent
from dialogs.turns.writes.lease import Claim

logger = logging.getLogger(__name__)
# How often a dialog may change between reading a request and recording its call.
MOST_CHANGES = 3


def begin(claim: Claim, loaded: LoadedDialog, *, attempt: int) -> Call:
    """Read what is sent, unless that was done a moment ago; record that it is sent. Where the dialog has changed since
    it was read, as a person typed, it is read anew."""

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
    """The first try of what was taken up a moment ago, recorded in the same transaction."""

    def recorded(sent: Sent) -> Generation:
        number = loaded.prepared.number if loaded.prepared else None
        return generations.add_call(loaded.dialog, claim, attempt=1, sent=sent, number=number)

    return _begun(loaded, recorded, attempt=1)


def _begun(loaded: LoadedDialog, recorded: Callable[[Sent], Generation], *, attempt: int) -> Call:
    dialog, guard, sizing = loaded.dialog, loaded.guard, loaded.sizing.to_send()
    context = _urged(continuing(sizing.context), attempt=attempt)
    if context is not sizing.context:
        sizing = Sizing(context, sizing.tools)
    request = _made_ahead(loaded, context) or chat_request(context, tools=sizing.tools)
    request = fitted(request_to_go_on(context, request), sizing, guard)
    generation = recorded(_sent(sizing, request))
    # Decrypting the key takes longer than reading its row.
    service = loaded.prepared.settings if loaded.prepared else settings_for(dialog.llm.provider)
    watch = _watch(sizing, guard)
    return Call(
        generation, request, service, sizing, watch, dialog.is_client_driven, _repetition_filter(context, request)
    )


def _made_ahead(loaded: LoadedDialog, context: Context) -> ChatRequest | None:
    """The request that was prepared ahead, if nothing was added to its dialog since."""
    return loaded.prepared.request if loaded.prepared and context is loaded.sizing.context else None


def _urged(context: Context, *, attempt: int) -> Context:
    """The same, asking for the answer where the last one was empty: the same request would get the same again."""
    if attempt == 1 or not generations.was_empty(context.branch[-1]):
        return context
    return replace(context, urge=prompt("empty", language=context.dialog.work_language))


def _repetition_filter(context: Context, request: ChatRequest) -> RepetitionFilter | None:
    """The filter of repetitions for an answer that continues a cut one."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return None
    sent = request.messages[-1].content if request.continues else None
    return RepetitionFilter("".join(piece.content for piece in pieces), sent=sent)


def fitted(request: ChatRequest, sizing: Sizing, guard: Guard | None) -> ChatRequest:
    """The request, its answer's maximum lowered where only prompt and answer together are more than the window."""
    asked, window = request.max_output_tokens, guard.window if guard else None
    if guard is None or asked is None or window is None or sizing.is_within(window - asked):
        return request
    left = window - _prompt_at_most(sizing)
    return request if asked <= left else replace(request, max_output_tokens=max(guard.answer, left))


def _prompt_at_most(sizing: Sizing) -> int:
    """The prompt as the server counted it when it refused this very request; else the estimate and what it may miss."""
    named = generations.prompt_named_by_refusal(sizing.context.dialog)
    if named is not None:
        return named
    return beside_an_answer(sizing.estimate.tokens, margin=sizing.estimate.margin)


def _watch(sizing: Sizing, guard: Guard | None) -> Watch | None:
    """The Watch of the answer's size; None where the window is unknown or compaction is off."""
    if guard is None or guard.off or guard.window is None or sizing.context.dialog.current_leaf is None:
        return None
    return Watch(sizing, guard, guard.window)


def _sent(sizing: Sizing, request: ChatRequest) -> Sent:
    """What the record of the call keeps: enough to say later what the model saw."""
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


# How many characters of the cut answer's end are sent, however it was compacted.
TAIL_CHARS = 800
LEFT_OUT = "[…] "


def cut_answer(branch: Sequence[Message]) -> tuple[Message, ...]:
    """The pieces of the answer that is to be gone on with, oldest first; empty where none is."""
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
    """The context made to ask for the rest of an answer that was cut, where one was; else the context itself."""
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
    """The last piece at the end of the view, whole or as it was shortened, with all of its end."""
    whole = "".join(piece.content for piece in pieces)
    texts = {piece.pk: piece.content for piece in pieces[:-1]}
    last = pieces[-1]
    own = last.content if seen is None or seen.content is None else seen.content
    if seen is not None and (_told_before(before, texts) + own).endswith(whole[-TAIL_CHARS:]):
        return [*before, seen]
    kept = own + "\n" if seen is not None and seen.content is not None else ""
    return [*before, Entry(message_id=last.pk, content=kept + LEFT_OUT + whole[-TAIL_CHARS:])]


def _told_before(entries: Sequence[Entry], texts: Mapping[int, str]) -> str:
    """What the view tells of the earlier pieces, directly before the last one."""
    told = ""
    for entry in reversed(entries):
        if entry.message_id is None or entry.message_id not in texts:
            break
        told = (texts[entry.message_id] if entry.content is None else entry.content) + told
    return told


def request_to_go_on(context: Context, request: ChatRequest) -> ChatRequest:
    """The request of a context that is `continuing`, marked where the model goes on by itself.

    Without the white space at its end, which some services refuse, and models were not trained on.
    """
    messages = request.messages
    goes_on = context.dialog.llm.prefill == Prefill.CONTINUES and cut_answer(context.branch)
    if not goes_on or not messages or messages[-1].role != "assistant":
        return request
    last = replace(messages[-1], content=messages[-1].content.rstrip())
    return replace(request, messages=(*messages[:-1], last), continues=True)
