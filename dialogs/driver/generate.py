"""One generation: ask the provider, show and keep what comes, record how it ended."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from contextlib import aclosing
from dataclasses import dataclass

from channels.db import database_sync_to_async as in_db
from django.utils import timezone

from dialogs.context import Context, chat_request, read_context
from dialogs.driver.decide import retry_delay
from dialogs.driver.live import LiveAnswer, show
from dialogs.driver.state import Failure, Policy
from dialogs.driver.tools.base import wire
from dialogs.driver.tools.mcp import refresh_stale
from dialogs.driver.tools.registry import tools_for
from dialogs.driver.windows import refusal
from dialogs.models import Generation
from dialogs.providers.base import ChatRequest, ContextOverflow, Provider, ProviderError, ProviderSettings, ToolsRefused
from dialogs.providers.registry import make_provider
from dialogs.selectors.path import course_branch
from dialogs.selectors.providers import settings_for
from dialogs.selectors.turns import dialog_to_drive, is_stop_requested
from dialogs.services import generations
from dialogs.services.generations import Sent
from dialogs.services.lease import Claim, LeaseLost
from dialogs.services.providers import record_overflow_window, record_tools_refused

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.3
FLUSH_EVERY_SECONDS = 1.0
END_SECONDS = 5.0


@dataclass(frozen=True)
class Call:
    """A generation that has been recorded and is about to be made."""

    generation: Generation
    request: ChatRequest
    settings: ProviderSettings


def begin(claim: Claim, *, attempt: int) -> Call:
    """Read what is sent, record that it is sent."""
    dialog = dialog_to_drive(claim.dialog_id)
    context = read_context(dialog, course_branch(dialog.current_leaf))
    request = chat_request(context, tools=[wire(tool) for tool in tools_for(dialog)])
    generation = generations.begin(claim, attempt=attempt, sent=_sent(context, request))
    return Call(generation, request, settings_for(dialog.llm.provider))


def _sent(context: Context, request: ChatRequest) -> Sent:
    """What the record of the call keeps: enough to say later what the model saw."""
    return Sent(
        message_ids=tuple(message.pk for message in context.sent),
        texts={
            "instructions": context.dialog.agent.instructions,
            "taskdoc": context.dialog.taskdoc,
            "reminders": "\n\n".join(f"{reminder.number}. {reminder.content}" for reminder in context.reminders),
            "tools": json.dumps(request.tools, ensure_ascii=False, sort_keys=True) if request.tools else "",
            "notice": context.notice,
        },
        options={"max_output_tokens": request.max_output_tokens},
    )


async def generate(claim: Claim, *, attempt: int, policy: Policy) -> None:
    dialog = await in_db(dialog_to_drive)(claim.dialog_id)
    await refresh_stale(dialog.agent)
    refused = await refusal(dialog.llm)
    call = await in_db(begin)(claim, attempt=attempt)
    live = LiveAnswer()
    try:
        if refused:
            raise refused
        stopped = await stream(claim, call, live)
    except ProviderError as error:
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    except LeaseLost:
        raise
    except Exception as error:
        logger.exception("Dialog %s: generation %s failed", claim.dialog_id, call.generation.pk)
        await fail(claim, call, live, error, failures=attempt, policy=policy)
    else:
        record = generations.stop if stopped else generations.finish
        await in_db(record)(claim, generation=call.generation, answer=live.as_answer())


async def stream(claim: Claim, call: Call, live: LiveAnswer) -> bool:
    """Receive the whole answer. True when a person stopped it on the way."""
    provider = make_provider(call.settings)
    shown = asyncio.create_task(show(live, dialog_id=claim.dialog_id, generation_id=call.generation.pk))
    watched = asyncio.create_task(keep_until_stopped(claim, call.generation.pk, live))
    received = asyncio.create_task(receive(provider, call.request, live))
    try:
        await asyncio.wait({received, watched}, return_when=asyncio.FIRST_COMPLETED)
        if received.done():
            received.result()
            return False
        watched.result()
        return True
    finally:
        live.close()
        await end(received, watched, shown)
        await provider.aclose()


async def receive(provider: Provider, request: ChatRequest, live: LiveAnswer) -> None:
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            live.add(event, now=timezone.now())


async def keep_until_stopped(claim: Claim, generation_id: int, live: LiveAnswer) -> None:
    """Flush what has come about once a second; return when a person asks to stop."""
    flushed_at, flushed_seq = 0.0, 0
    while not await in_db(is_stop_requested)(claim.dialog_id):
        if live.seq > flushed_seq and time.monotonic() - flushed_at >= FLUSH_EVERY_SECONDS:
            flushed_at, flushed_seq = time.monotonic(), live.seq
            await in_db(generations.flush)(
                claim, generation_id=generation_id, text=live.text, reasoning=live.reasoning, seq=live.seq
            )
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def end(*tasks: asyncio.Task[None]) -> None:
    """Cancel what still runs: a closed stream tells the server to stop.

    Waits a bounded time: the Redis client can swallow a cancellation, and a turn must not hang on that.
    """
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=END_SECONDS)


async def fail(claim: Claim, call: Call, live: LiveAnswer, error: Exception, *, failures: int, policy: Policy) -> None:
    """Record the failure, what it taught about the window, and when the next try is due, if any."""
    known = error if isinstance(error, ProviderError) else None
    delay = retry_delay(
        Failure(retryable=bool(known and known.retryable), retry_after=known.retry_after if known else None),
        failures=failures,
        policy=policy,
        jitter=random.random(),  # noqa: S311  spreads retries; guards nothing
    )
    if isinstance(error, ToolsRefused) and call.request.tools and call.generation.llm:
        await in_db(record_tools_refused)(llm=call.generation.llm)
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
