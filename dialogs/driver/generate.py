"""One generation: calls the provider, shows and stores the answer as it streams, records how it ended."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction

from dialogs.agents.tools.mcp import refresh
from dialogs.common.broadcast import answer_held, is_watched
from dialogs.common.schedule import queue_warm_up
from dialogs.common.threads import in_db, persistent
from dialogs.context import writes
from dialogs.context.estimate import Sizing
from dialogs.context.reads import context_stats, is_due
from dialogs.context.writes import learn_from_usage
from dialogs.driver.calls import begin
from dialogs.driver.decide import retry_delay
from dialogs.driver.guarding import LoadedDialog, load
from dialogs.driver.prefill import find_out, record_refused
from dialogs.driver.streaming import Call, LiveAnswer, StreamEnd, stream
from dialogs.driver.subscriber import SILENT, Subscriber
from dialogs.driver.writes import cutting, turns
from dialogs.driver.writes.turns import stand_in_line
from dialogs.llms.counter import calibration_of
from dialogs.llms.guard import bounds_of, kind_of
from dialogs.llms.windows import refusal, window_now
from dialogs.llms.writes.providers import record_message_shape, record_tools_refused
from dialogs.models import LLM, Generation, Provider
from dialogs.models.llm import WindowSource
from dialogs.models.message import Role
from dialogs.providers.base import (
    ContextOverflow,
    MessagesRefused,
    ProviderError,
    RequestRefused,
    ToolsRefused,
)
from dialogs.providers.laws import next_shape
from dialogs.providers.pool import slot
from dialogs.turns.reads.turns import dialog_to_drive, failing_for, is_stop_requested
from dialogs.turns.state import MAX_RESTARTS, Failure, Policy
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Answer
from dialogs.turns.writes.lease import Claim, LeaseLost
from dominds.rows import update
from health.limits import output_reserve
from health.monitor.levels import Usage, UsageUnavailable
from health.tokens.calibration import Calibration
from health.tokens.windows import Refused, Report, exceeds, falls_short, teaches

logger = logging.getLogger(__name__)
# Seconds that a complete answer is held in memory while the database is away; after that it is requested again.
HELD_SECONDS = 600.0
# The error code if the prompt fits, but not together with the answer's maximum.
ANSWER_TOO_LONG = "answer_too_long"
# From this share of the threshold on, the worker of compactions is asked to load its models.
WARM_UP_FROM = 0.7


async def generate(
    claim: Claim, *, attempt: int, policy: Policy, subscriber: Subscriber = SILENT, known: LoadedDialog | None = None
) -> bool:
    """Make one generation as soon as the provider has a free slot. `known` is the dialog as read a moment ago.

    Returns False if it is known that no further answer is due.
    """
    loaded = known or await in_db(_load)(claim.dialog_id)
    # The next decision handles a request that left the queue.
    with suppress(LeftQueue):
        async with provider_slot(loaded.dialog.llm.provider, claim, subscriber) as waited:
            if waited:
                loaded = await in_db(_load)(claim.dialog_id)
            return await ask(claim, loaded, attempt=attempt, policy=policy, subscriber=subscriber)
    return True


def _load(dialog_id: UUID) -> LoadedDialog:
    return load(dialog_to_drive(dialog_id))


async def ask(claim: Claim, loaded: LoadedDialog, *, attempt: int, policy: Policy, subscriber: Subscriber) -> bool:
    if loaded.to_ask:
        await refresh(list(loaded.to_ask))
        loaded = await in_db(_load)(claim.dialog_id)
    refused = await refusal(loaded.dialog.llm)
    call = await in_db(begin)(claim, loaded, attempt=attempt)
    return await answer(claim, call, policy=policy, subscriber=subscriber, refused=refused)


async def answer(
    claim: Claim, call: Call, *, policy: Policy, subscriber: Subscriber, refused: ProviderError | None = None
) -> bool:
    """Make a recorded call. Returns False if it is known that no further answer is due."""
    live, attempt = LiveAnswer(), call.generation.attempt
    try:
        if refused:
            raise refused
        ending = await stream(claim, call, live, subscriber)
    except ProviderError as error:
        subscriber.failed(error)
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    except LeaseLost:
        raise
    except Exception as error:
        logger.exception("Dialog %s: generation %s failed", claim.dialog_id, call.generation.pk)
        subscriber.failed(None)
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    else:
        kept = persistent(in_db(keep), seconds=HELD_SECONDS, told=partial(answer_held, claim.dialog_id))
        doubted, is_due = await kept(claim, call, live, ending, subscriber)
        if doubted and await is_cut(call, doubted) and ending is StreamEnd.FINISHED:
            await ask_unwatched(claim, call)
        await prepare_to_go_on(call, live, ending)
        if is_compaction_near(call, live.usage):
            await in_db(queue_warm_up)()
        return is_due
    return True


def is_compaction_near(call: Call, usage: Usage | UsageUnavailable) -> bool:
    """May one of the next requests be compacted, from what the provider reported? Only where Dominds does so itself."""
    guard = call.watch.guard if call.watch else None
    return guard is not None and isinstance(usage, Usage) and usage.total_tokens >= WARM_UP_FROM * guard.threshold


async def prepare_to_go_on(call: Call, live: LiveAnswer, ending: StreamEnd) -> None:
    """After a cut answer: test whether the model continues an assistant message (prefill)."""
    if ending is StreamEnd.CUT and live.text.strip():
        await find_out(call.sizing.context.dialog.llm, call.settings)


def keep(
    claim: Claim, call: Call, live: LiveAnswer, ending: StreamEnd, subscriber: Subscriber
) -> tuple[SuspectReport | None, bool]:
    """Record the answer, learn from its usage. Returns the usage if it is suspect; and may a further answer be due?"""
    if _is_kept(call.generation):
        return None, True
    if call.is_clients and ending is StreamEnd.FINISHED:
        is_due = _record_and_conclude(claim, call, live, subscriber)
    else:
        is_due = record(claim, call, live, ending)
    return _learn(call, live.usage), is_due


def _is_kept(generation: Generation) -> bool:
    """Was the end recorded by an earlier try whose commit was not confirmed, as the connection broke?"""
    running = Generation.Status.RUNNING
    return generation.status != running and not Generation.objects.filter(pk=generation.pk, status=running).exists()


def _record_and_conclude(claim: Claim, call: Call, live: LiveAnswer, subscriber: Subscriber) -> bool:
    """In one transaction. If that fails in `conclude`, the answer is recorded without it."""
    try:
        with transaction.atomic():
            is_due = record(claim, call, live, StreamEnd.FINISHED)
            if not is_due:
                subscriber.conclude(call.generation, has_calls=bool(live.calls))
            return is_due
    except (LeaseLost, InterfaceError, OperationalError):
        raise
    except Exception:
        logger.exception("Dialog %s: its turn is not concluded with its answer", claim.dialog_id)
        return record(claim, call, live, StreamEnd.FINISHED)


def record(claim: Claim, call: Call, live: LiveAnswer, ending: StreamEnd) -> bool:
    """Record the answer. False if no further answer is due: a client adds nothing meanwhile."""
    answer, is_due = live.as_answer(), True
    match ending:
        case StreamEnd.FINISHED if _is_worth_a_second_try(call, answer):
            generations.fail(
                claim, generation=call.generation, answer=answer, code=generations.EMPTY, error="", retry_in=0.0
            )
        case StreamEnd.FINISHED:
            message = generations.finish(claim, generation=call.generation, answer=answer)
            is_due = message.dialog.answer_due or not call.is_clients
        case StreamEnd.STOPPED:
            generations.stop(claim, generation=call.generation, answer=answer)
        case StreamEnd.CUT if answer.text.strip():
            cutting.cut(claim, generation=call.generation, answer=answer)
        case StreamEnd.CUT:
            cutting.ask_again(claim, generation=call.generation, answer=answer)
        case StreamEnd.FULL:
            tokens, window = (call.watch.tokens, call.watch.window) if call.watch else (0, None)
            cutting.fill(claim, generation=call.generation, answer=answer, tokens=tokens, window=window or tokens)
    if ending in (StreamEnd.FINISHED, StreamEnd.FULL) or (ending is StreamEnd.CUT and answer.text.strip()):
        log_statistics(claim.dialog_id)
    return is_due


def _is_worth_a_second_try(call: Call, answer: Answer) -> bool:
    """Is this the first empty answer to a message? Small models give one now and then. After a tool's result an empty
    answer may be right; a client gets it as it is."""
    said_nothing = not (answer.text.strip() or answer.calls) and answer.finish_reason == "stop"
    is_answer = call.generation.prompt_leaf.role == Role.USER and not call.is_clients
    return said_nothing and is_answer and not call.sizing.context.urge


async def ask_unwatched(claim: Claim, call: Call) -> None:
    """Ask again after an answer to a cut prompt, but not if a person watches or a client asked: they can ask again."""
    if not call.is_clients and not await is_watched(claim.dialog_id):
        await in_db(turns.ask_once_more)(claim, generation=call.generation)


async def is_cut(call: Call, doubted: SuspectReport) -> bool:
    """Is it known now that the server cut this request?"""
    # The server may have restarted with a smaller window.
    window = await window_now(call.generation.llm) if call.generation.llm else None
    if not (doubted.is_suspect or exceeds(doubted.report, window)):
        await in_db(_believe)(call, doubted.report, doubted.before)
        return False
    suspected: bool = await in_db(writes.suspect_cut)(call.generation, doubted.report, window=window)
    return suspected


class SuspectReport(NamedTuple):
    """A usage report of a request that the server may have cut; if not `is_suspect`, only a smaller window shows it."""

    report: Report
    before: Report | None
    is_suspect: bool


def _learn(call: Call, usage: Usage | UsageUnavailable) -> SuspectReport | None:
    """Learn about the estimate and the window from this request's usage, unless the server's window must be read again
    first: then return the report."""
    llm, generation = call.generation.llm, call.generation
    if llm is None or not isinstance(usage, Usage):
        return None
    reported = usage.prompt_tokens
    if not (call.sizing.is_counted or _teaches(llm, call.sizing)):
        writes.learn_from_report(generation, reported=reported)
        return None
    told = call.sizing.request_estimate
    if not generation.manifest.get("estimated"):
        generation.manifest["estimated"] = told.tokens
        update(generation, "manifest")
    report = writes.report_of(generation, reported=reported, estimated=told.tokens)
    before = writes.largest_before(generation)
    if writes.is_cut_suspected(generation, report, before):
        return SuspectReport(report, before, is_suspect=True)
    if falls_short(report) and not bounds_of(llm).reports_part and kind_of(llm).reports_truly:
        return SuspectReport(report, before, is_suspect=False)
    _believe(call, report, before)
    return None


def _believe(call: Call, report: Report, before: Report | None) -> None:
    """Learn from a report, if its tokens grew with the request."""
    llm = call.generation.llm
    if llm is not None and not bounds_of(llm).reports_part and teaches(report, before=before):
        writes.learn_from_report(call.generation, reported=report.reported)
        learn_from_usage(llm=llm, estimate=call.sizing.request_estimate, reported=report.reported)


def _teaches(llm: LLM, sizing: Sizing) -> bool:
    """Must the request's tokens be counted after its answer, to learn from it? Not if window and counter are known and
    its bytes show that the server had no reason to cut it. Without compaction nothing else checks that."""
    known, window = calibration_of(llm), llm.context_length
    is_calibrated = isinstance(known, Calibration) and known.is_trusted
    is_told = window is not None and llm.context_length_source != WindowSource.REFUSAL
    return not (is_calibrated and is_told and sizing.is_within(window or 0))


async def _read_changed_window(llm: LLM | None) -> None:
    """Read the window again of a server that once told it: it may run with another one now. Read only once it has grown
    again, it would seem unchanged, and what is learned from the refusal would stay."""
    if llm is not None and llm.detected_context_length:
        await window_now(llm)


def _learn_from_refusal(call: Call, error: ContextOverflow) -> None:
    """Learn about the window from a refusal as too long; and about the estimate, if it names the prompt's tokens."""
    llm, told = call.generation.llm, call.sizing.request_estimate
    if llm is None or error.is_of_bytes:
        return
    said = Refused(
        prompt=error.prompt_tokens or told.tokens,
        answer=call.request.max_output_tokens or 0,
        named=error.context_window,
        words=str(error),
    )
    writes.learn_from_refusal(call.generation, said)
    if error.prompt_tokens:
        learn_from_usage(llm=llm, estimate=told, reported=error.prompt_tokens)


def _fits_with_a_shorter_answer(call: Call, error: ContextOverflow) -> bool:
    """Was only the answer's maximum too large? Then the request is repeated with a lower one."""
    window, prompt, asked = error.context_window, error.prompt_tokens, call.request.max_output_tokens
    if not (window and prompt and asked) or call.generation.manifest.get("prompt"):
        return False
    call.generation.manifest["prompt"] = prompt
    least = output_reserve(window, requested=asked)
    return call.generation.attempt <= MAX_RESTARTS and asked > window - prompt >= least


def _has_clients_tools(call: Call) -> bool:
    """Only then is the client told that its tools are refused; it does not know ours."""
    client = call.sizing.context.client
    return client is not None and bool(client.tools)


async def fail(claim: Claim, call: Call, live: LiveAnswer, error: Exception, *, failures: int, policy: Policy) -> None:
    """Record the failure, what it says about the window, and when the next try is due, if any."""
    known = error if isinstance(error, ProviderError) else None
    delay = retry_delay(
        Failure(
            retryable=bool(known and known.retryable),
            retry_after=known.retry_after if known else None,
            failing_for=await in_db(failing_for)(claim.dialog_id) if known and known.retryable else None,
        ),
        failures=failures,
        policy=policy,
        jitter=random.random(),  # noqa: S311  spreads retries; guards nothing
    )
    if isinstance(error, ToolsRefused) and call.request.tools and call.generation.llm and not _has_clients_tools(call):
        await in_db(record_tools_refused)(llm=call.generation.llm)
        delay = 0.0
    if isinstance(error, RequestRefused) and call.request.continues and call.generation.llm:
        await in_db(record_refused)(call.generation.llm)
        delay = 0.0
    elif isinstance(error, MessagesRefused) and call.generation.llm:
        shape = next_shape(call.generation.llm.message_shape, str(error))
        if shape is not None:
            await in_db(record_message_shape)(llm=call.generation.llm, shape=shape)
            delay = 0.0
    code = known.code if known else "internal_error"
    if isinstance(error, ContextOverflow):
        await _read_changed_window(call.generation.llm)
        await in_db(_learn_from_refusal)(call, error)
        if _fits_with_a_shorter_answer(call, error):
            code, delay = ANSWER_TOO_LONG, 0.0
    await in_db(generations.fail)(
        claim,
        generation=call.generation,
        answer=live.as_answer(),
        code=code,
        error=str(error) if known else "",
        retry_in=delay,
    )


# --- A line of statistics in the log, after every fifth generation of a dialog ---
def log_statistics(dialog_id: UUID) -> None:
    """Log the least messages of the next request, and about how many tokens. Call it after a finished generation."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    steps = Generation.objects.filter(dialog=dialog_id, status=Generation.Status.FINISHED).count()
    if is_due(steps, debug=True):
        logger.debug("%s", context_stats(dialog_to_drive(dialog_id)))


class LeftQueue(Exception):
    """The request was taken out of the provider's queue: nobody wants its answer any more."""


class QueueWait:
    """One turn's wait for a slot. `place`: its place as last sent to browsers; `waited`: whether it had to wait."""

    def __init__(self, claim: Claim, subscriber: Subscriber) -> None:
        self._claim, self._subscriber = claim, subscriber
        self._place: int | None = None
        self.waited = False

    async def at(self, place: int) -> None:
        if self._subscriber.has_left or await in_db(is_stop_requested)(self._claim.dialog_id):
            raise LeftQueue
        self.waited = True
        await self._show(place)

    async def over(self) -> None:
        await self._show(None)

    async def _show(self, place: int | None) -> None:
        if place != self._place:
            await in_db(stand_in_line)(self._claim, place)
        self._place = place


@asynccontextmanager
async def provider_slot(provider: Provider, claim: Claim, subscriber: Subscriber) -> AsyncIterator[bool]:
    """Hold a slot of the provider. Yields whether it had to wait. Raises LeftQueue."""
    waiting = QueueWait(claim, subscriber)
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(slot(provider.name, most=provider.max_concurrent, on_wait=waiting.at))
        finally:
            await waiting.over()
        yield waiting.waited
