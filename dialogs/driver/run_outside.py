"""Calls that reach outside the database: made, tried again where that is safe, and recorded; and a person asked."""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid5

from django.db import InterfaceError, OperationalError

from dialogs.agents.tools.base import Arguments, OutsideTool, ToolError, TransientError
from dialogs.common.threads import in_db
from dialogs.driver.retrying import with_retries
from dialogs.driver.writes import rounds
from dialogs.models import ToolCall
from dialogs.transcript.reads.tool_calls import ASK_HUMAN
from dialogs.turns.reads.turns import seconds_until
from dialogs.turns.writes.lease import Claim, LeaseLost
from health.compaction.config import RetryPolicy
from health.configured import context_config

logger = logging.getLogger(__name__)
FAULT = "The tool failed inside Dominds. Calling it again in the same way will not help."
# Another name of our `ask_human`.
ASK_QUESTION = "askQuestion"


async def perform_outside(claim: Claim, call: ToolCall, tool: OutsideTool, arguments: Arguments) -> None:
    policy = await in_db(_policy)(tool.name, tool.own_name)

    async def make(attempt: int) -> str:
        await in_db(rounds.start_call)(claim, call, idempotent=tool.idempotent, attempt=attempt)
        async with asyncio.timeout(tool.timeout_seconds):
            return await tool.perform(arguments, key_of(claim, call))

    async def on_wait(attempt: int, seconds: float) -> None:
        await in_db(rounds.await_retry)(claim, call, attempt=attempt, most=policy.max_attempts, seconds=seconds)

    try:
        result = await with_retries(
            make,
            policy=policy,
            is_safe=tool.idempotent,
            on_wait=on_wait,
            first=call.attempt,
            after=seconds_until(call.retry_at) or 0.0,
        )
        failed = False
    except ToolError as error:
        failed, result = True, str(error)
    except TimeoutError:
        failed, result = True, f"The tool did not answer within {tool.timeout_seconds:g} s."
    except (LeaseLost, OperationalError, InterfaceError):
        # Nothing can be recorded now: whoever drives the dialog next sees what had begun.
        raise
    except Exception:
        logger.exception("Tool %s failed", call.name)
        failed, result = True, FAULT
    await in_db(rounds.end_call)(claim, call, failed=failed, result=result)


def _policy(*names: str) -> RetryPolicy:
    return context_config().retries_of(*names)


def key_of(claim: Claim, call: ToolCall) -> str:
    """One for each call, however often and by whomever it is made; and no other house has the same."""
    return str(uuid5(claim.dialog_id, str(call.pk)))


async def ask_person(claim: Claim, call: ToolCall, arguments: Arguments) -> None:
    """Deliver the question, again if the database is away for the moment. The call is its key: it is asked once."""

    async def deliver(_attempt: int) -> None:
        try:
            await in_db(rounds.ask_person)(
                claim, call, text=arguments["question"], choices=arguments.get("choices", ())
            )
        except (InterfaceError, OperationalError) as error:
            raise TransientError("The question could not be stored.") from error

    async def on_wait(attempt: int, seconds: float) -> None:
        logger.warning("Question of call %s: try %s in %.1f s", call.pk, attempt, seconds)

    policy = await in_db(_policy)(ASK_HUMAN, ASK_QUESTION)
    await with_retries(deliver, policy=policy, is_safe=True, on_wait=on_wait)
