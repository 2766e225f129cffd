"""A call of a provider before it is made: what is sent, and the record of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from dialogs.context.border import Context, chat_request, instructions_of
from dialogs.context.continuing import continuing, cut_answer, request_to_go_on
from dialogs.context.estimate import Sizing, beside_an_answer
from dialogs.context.reads.prefix import stable_prefix
from dialogs.driver.guarding import Looked
from dialogs.driver.seam import Seam
from dialogs.driver.streaming import Call
from dialogs.driver.watch import Watch
from dialogs.llms.guard import Guard
from dialogs.llms.reads import max_output_of, settings_for
from dialogs.models import Generation
from dialogs.providers.base import ChatRequest
from dialogs.turns.prompts import prompt
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Sent
from dialogs.turns.writes.lease import Claim

logger = logging.getLogger(__name__)


def begin(claim: Claim, looked: Looked, *, attempt: int) -> Call:
    """Read what is sent, unless that was done a moment ago; record that it is sent."""

    def recorded(sent: Sent) -> Generation:
        return generations.begin(claim, attempt=attempt, sent=sent, known=generations.clients(looked.dialog))

    call = _begun(looked, recorded, attempt=attempt)
    if call.sizing.is_counted and (share := stable_prefix(call.generation.course_id)) is not None:
        logger.info("Dialog %s: ≈%d %% of the request begins as the last one did", claim.dialog_id, 100 * share)
    return call


def begin_taken(claim: Claim, looked: Looked) -> Call:
    """The first try of what was taken up a moment ago, recorded in the same transaction."""

    def recorded(sent: Sent) -> Generation:
        number = looked.ahead.number if looked.ahead else None
        return generations.add_call(looked.dialog, claim, attempt=1, sent=sent, number=number)

    return _begun(looked, recorded, attempt=1)


def _begun(looked: Looked, recorded: Callable[[Sent], Generation], *, attempt: int) -> Call:
    dialog, guard, sizing = looked.dialog, looked.guard, looked.sizing.to_send()
    context = _urged(continuing(sizing.context), attempt=attempt)
    if context is not sizing.context:
        sizing = Sizing(context, sizing.tools)
    request = _made_ahead(looked, context) or chat_request(context, tools=sizing.tools)
    request = fitted(request_to_go_on(context, request), sizing, guard)
    generation = recorded(_sent(sizing, request))
    # To decrypt a key takes longer than to read it.
    service = looked.ahead.settings if looked.ahead else settings_for(dialog.llm.provider)
    watch = _watch(sizing, guard)
    return Call(generation, request, service, sizing, watch, dialog.is_client_driven, _seam(context, request))


def _made_ahead(looked: Looked, context: Context) -> ChatRequest | None:
    """Where nothing was added to it since."""
    return looked.ahead.request if looked.ahead and context is looked.sizing.context else None


def _urged(context: Context, *, attempt: int) -> Context:
    """The same, asking for the answer where the last one was empty: the same request would get the same again."""
    if attempt == 1 or not generations.was_empty(context.branch[-1]):
        return context
    return replace(context, urge=prompt("empty", language=context.dialog.work_language))


def _seam(context: Context, request: ChatRequest) -> Seam | None:
    """Where the answer goes on with one that was cut."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return None
    sent = request.messages[-1].content if request.continues else None
    return Seam("".join(piece.content for piece in pieces), sent=sent)


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
    """Who watches the answer grow, where the window is known and compaction is not switched off."""
    if guard is None or guard.off or guard.window is None or sizing.context.dialog.current_leaf is None:
        return None
    return Watch(sizing, guard, guard.window)


def _sent(sizing: Sizing, request: ChatRequest) -> Sent:
    """What the record of the call keeps: enough to say later what the model saw."""
    context, asked = sizing.context, max_output_of(sizing.context.dialog)
    return Sent(
        message_ids=tuple(message.id for message in context.sent),
        texts={
            "instructions": instructions_of(context),
            "taskdoc": context.beginning.first.taskdoc,
            "reminders": "\n\n".join(f"{one.number}. {one.text}" for one in context.beginning.first.reminders),
            "tools": json.dumps(request.tools, ensure_ascii=False, sort_keys=True) if request.tools else "",
            "notice": context.notice,
            "urge": context.urge,
            "task": context.task,
            "changed": context.beginning.changed,
            "begins": "" if context.client else context.beginning.kept,
        },
        options={"max_output_tokens": request.max_output_tokens, **request.options},
        view=context.run_id,
        kept=tuple(chain.from_iterable(context.kept)),
        estimated_tokens=sizing.foretold.tokens if sizing.is_counted else None,
        asked_tokens=asked if asked != request.max_output_tokens else None,
    )
