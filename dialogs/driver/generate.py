"""One generation: ask the provider, show and keep what comes, record how it ended."""

from __future__ import annotations

import json
import logging
import random
from contextlib import suppress

from dialogs.compacting.estimate import counter_of, estimate, foretold
from dialogs.compacting.guard import Guard, guard_of
from dialogs.compacting.present import offered_tools
from dialogs.context import Context, chat_request, instructions_of, read_context
from dialogs.continuing import continuing, cut_answer, request_to_go_on
from dialogs.driver.audience import NOBODY, Audience
from dialogs.driver.debugging import log_statistics
from dialogs.driver.decide import retry_delay
from dialogs.driver.in_line import LeftTheLine, provider_slot
from dialogs.driver.live import LiveAnswer
from dialogs.driver.prefill import find_out, record_refused
from dialogs.driver.seam import Seam
from dialogs.driver.state import Failure, Policy
from dialogs.driver.streaming import Call, Ending, stream
from dialogs.driver.tools.mcp import refresh_stale
from dialogs.driver.watch import Watch, can_help
from dialogs.driver.windows import refusal
from dialogs.models import Dialog
from dialogs.providers.base import (
    ChatRequest,
    ContextOverflow,
    ProviderError,
    RequestRefused,
    ToolsRefused,
)
from dialogs.selectors.compaction import may_compact
from dialogs.selectors.path import course_branch
from dialogs.selectors.prefix import stable_prefix
from dialogs.selectors.providers import settings_for
from dialogs.selectors.turns import dialog_to_drive
from dialogs.services import cutting, generations
from dialogs.services.calibration import learn_from_usage
from dialogs.services.generations import Sent
from dialogs.services.lease import Claim, LeaseLost
from dialogs.services.providers import record_overflow_window, record_tools_refused
from dialogs.threads import in_db
from health.monitor.usage import Usage

logger = logging.getLogger(__name__)


def begin(claim: Claim, dialog: Dialog, *, attempt: int) -> Call:
    """Read what is sent, record that it is sent."""
    guard = guard_of(dialog)
    context = continuing(read_context(dialog, course_branch(dialog.current_leaf), guard))
    request = request_to_go_on(context, chat_request(context, tools=offered_tools(dialog)))
    watch = _watch(context, request, guard)
    sent = _sent(context, request, watch)
    generation = generations.begin(claim, attempt=attempt, sent=sent, known=generations.clients(dialog))
    if watch and (share := stable_prefix(generation.course_id)) is not None:
        logger.info("Dialog %s: ≈%d %% of the request begins as the last one did", claim.dialog_id, 100 * share)
    seam = _seam(context, request)
    return Call(generation, request, settings_for(dialog.llm.provider), watch, dialog.is_client_driven, seam)


def _seam(context: Context, request: ChatRequest) -> Seam | None:
    """Where the answer goes on with one that was cut."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return None
    sent = request.messages[-1].content if request.continues else None
    return Seam("".join(piece.content for piece in pieces), sent=sent)


def _watch(context: Context, request: ChatRequest, guard: Guard | None) -> Watch | None:
    """Where somebody guards this dialog: what its request is likely to take, and who watches the answer."""
    leaf = context.dialog.current_leaf
    if guard is None or leaf is None:
        return None
    counter = counter_of(context.dialog.llm)
    guessed = estimate(context, request.tools, counter)
    told = foretold(guessed, context.dialog.llm, request.tools, counter)
    may_cut = may_compact(leaf) and can_help(context, request, guard, told.tokens)
    return Watch(told, guard.window, counter, may_cut=may_cut)


def _sent(context: Context, request: ChatRequest, watch: Watch | None) -> Sent:
    """What the record of the call keeps: enough to say later what the model saw."""
    return Sent(
        message_ids=tuple(message.pk for message in context.sent),
        texts={
            "instructions": instructions_of(context),
            "taskdoc": context.dialog.taskdoc,
            "reminders": "\n\n".join(f"{reminder.number}. {reminder.content}" for reminder in context.reminders),
            "tools": json.dumps(request.tools, ensure_ascii=False, sort_keys=True) if request.tools else "",
            "notice": context.notice,
            "task": context.task,
        },
        options={"max_output_tokens": request.max_output_tokens, **request.options},
        view=context.run_id,
        estimated_tokens=watch.foretold.tokens if watch else None,
    )


async def generate(
    claim: Claim, *, attempt: int, policy: Policy, audience: Audience = NOBODY, known: Dialog | None = None
) -> None:
    """As soon as the provider has a slot for it. `known` is the dialog as it was read a moment ago."""
    dialog = known or await in_db(dialog_to_drive)(claim.dialog_id)
    # Who left the line is looked after by the next decision.
    with suppress(LeftTheLine):
        async with provider_slot(dialog.llm.provider, claim, audience) as waited:
            if waited:
                dialog = await in_db(dialog_to_drive)(claim.dialog_id)
            await ask(claim, dialog, attempt=attempt, policy=policy, audience=audience)


async def ask(claim: Claim, dialog: Dialog, *, attempt: int, policy: Policy, audience: Audience) -> None:
    if not dialog.is_client_driven:
        await refresh_stale(dialog.agent)
    refused = await refusal(dialog.llm)
    call = await in_db(begin)(claim, dialog, attempt=attempt)
    live = LiveAnswer()
    try:
        if refused:
            raise refused
        ending = await stream(claim, call, live, audience)
    except ProviderError as error:
        audience.failed(error)
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    except LeaseLost:
        raise
    except Exception as error:
        logger.exception("Dialog %s: generation %s failed", claim.dialog_id, call.generation.pk)
        audience.failed(None)
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    else:
        await in_db(record)(claim, call, live, ending)
        if call.watch:
            await in_db(learn)(call, call.watch, live)
        await prepare_to_go_on(dialog, call, live, ending)


async def prepare_to_go_on(dialog: Dialog, call: Call, live: LiveAnswer, ending: Ending) -> None:
    """Where the answer was cut: know how to ask for the rest of it."""
    if ending is Ending.CUT and live.text.strip():
        await find_out(dialog.llm, call.settings)


def record(claim: Claim, call: Call, live: LiveAnswer, ending: Ending) -> None:
    answer = live.as_answer()
    match ending:
        case Ending.FINISHED:
            generations.finish(claim, generation=call.generation, answer=answer)
        case Ending.STOPPED:
            generations.stop(claim, generation=call.generation, answer=answer)
        case Ending.CUT if answer.text.strip():
            cutting.cut(claim, generation=call.generation, answer=answer)
        case Ending.CUT:
            cutting.ask_again(claim, generation=call.generation, answer=answer)
        case Ending.FULL:
            tokens, window = (call.watch.tokens, call.watch.window) if call.watch else (0, None)
            cutting.fill(claim, generation=call.generation, answer=answer, tokens=tokens, window=window or tokens)
    if ending in (Ending.FINISHED, Ending.FULL):
        log_statistics(claim.dialog_id)


def learn(call: Call, watch: Watch, live: LiveAnswer) -> None:
    """Let the estimate of a guarded request learn from what was reported of it."""
    if isinstance(live.usage, Usage) and call.generation.llm:
        learn_from_usage(llm=call.generation.llm, foretold=watch.foretold, reported=live.usage.prompt_tokens)


async def fail(claim: Claim, call: Call, live: LiveAnswer, error: Exception, *, failures: int, policy: Policy) -> None:
    """Record the failure, what it taught about the window, and when the next try is due, if any."""
    known = error if isinstance(error, ProviderError) else None
    delay = retry_delay(
        Failure(retryable=bool(known and known.retryable), retry_after=known.retry_after if known else None),
        failures=failures,
        policy=policy,
        jitter=random.random(),  # noqa: S311  spreads retries; guards nothing
    )
    if isinstance(error, ToolsRefused) and call.request.tools and call.generation.llm and not call.is_clients:
        await in_db(record_tools_refused)(llm=call.generation.llm)
        delay = 0.0
    if isinstance(error, RequestRefused) and call.request.continues and call.generation.llm:
        await in_db(record_refused)(call.generation.llm)
        delay = 0.0
    if isinstance(error, ContextOverflow) and error.context_window and call.generation.llm:
        await in_db(record_overflow_window)(llm=call.generation.llm, context_window=error.context_window)
    await in_db(generations.fail)(
        claim,
        generation=call.generation,
        answer=live.as_answer(),
        code=known.code if known else "internal_error",
        error=str(error) if known else "",
        retry_in=delay,
    )
