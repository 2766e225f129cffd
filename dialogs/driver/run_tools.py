"""Makes one round of tool calls: checks, runs and records them; a question waits for the person, clear_mind comes last.

An error becomes the call's result. Adjacent calls of tools that are declared `parallel` run at the same time; the
results keep the calls' order.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid5

import jsonschema
from django.db import InterfaceError, OperationalError

from dialogs.agents.tools import schemas
from dialogs.agents.tools.base import Arguments, DialogTool, OutsideTool, Tool, ToolError, TransientError
from dialogs.agents.tools.registry import tools_for
from dialogs.common.errors import DialogError
from dialogs.common.threads import in_db
from dialogs.driver.retries import with_retries
from dialogs.driver.streaming import end
from dialogs.driver.writes import rounds
from dialogs.models import ToolCall
from dialogs.transcript.reads.tool_calls import ASK_HUMAN, CLEAR_MIND, NO_SUCH_TOOL, UNFIT, UNREADABLE, calls_of
from dialogs.turns.reads.turns import dialog_to_drive, is_message_waiting, is_stop_requested, seconds_left
from dialogs.turns.writes.lease import Claim, LeaseLost
from health.compaction.config import RetryPolicy
from health.configured import context_config

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.3
NOT_BEGUN = "Not made: the person has written something meanwhile. Read that first; call it again if it still fits."
BEGUN_BEFORE = (
    "Not made again: an earlier try was begun, and what it did is not known. The person has written something "
    "meanwhile. Read that first."
)
NO_MORE_ROUNDS = "Refused: this turn has made too many rounds of tool calls. Answer the person with what you have."
# The same each time, so that equal refusals can be seen to be equal.
CORRECT_IT = "Correct it, or answer the person in words: the fourth such round in a row ends the turn."


async def run_tools(claim: Claim, *, refused: bool) -> None:
    """Make the open calls of the newest answer. Returns early when a person asks to stop."""
    running = asyncio.create_task(_refuse(claim) if refused else _run(claim))
    watching = asyncio.create_task(_until_stopped(claim))
    try:
        await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        await end(running, watching)


async def _until_stopped(claim: Claim) -> None:
    # The flag is a column: there is no event to wait for.
    while not await in_db(is_stop_requested)(claim.dialog_id):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _read(claim: Claim) -> tuple[list[ToolCall], dict[str, Tool]]:
    """The open calls that are not waiting for a person, and the tools by name."""
    dialog = dialog_to_drive(claim.dialog_id)
    calls = calls_of(dialog.current_leaf) if dialog.current_leaf else []
    pending = [call for call in calls if call.status == ToolCall.Status.PENDING]
    return pending, {tool.name: tool for tool in tools_for(dialog)}


async def _refuse(claim: Claim) -> None:
    pending, _tools = await in_db(_read)(claim)
    for call in pending:
        await in_db(rounds.end_call)(claim, call, failed=True, result=NO_MORE_ROUNDS)
    await in_db(rounds.close_round)(claim)


async def _run(claim: Claim) -> None:
    pending, tools = await in_db(_read)(claim)
    for group in grouped([call for call in pending if call.name != CLEAR_MIND], tools):
        if await _is_interrupted(claim, pending):
            return
        async with asyncio.TaskGroup() as side_by_side:
            for call in group:
                side_by_side.create_task(_make(claim, call, tools))
    clearing = [call for call in pending if call.name == CLEAR_MIND]
    if clearing and await _is_interrupted(claim, pending):
        return
    for call in clearing:
        # Several `clear_mind` calls of a round open one course.
        await _make(claim, call, tools, clears=call is clearing[-1])
    await in_db(rounds.close_round)(claim)


async def _is_interrupted(claim: Claim, calls: Sequence[ToolCall]) -> bool:
    """If a person has typed something, start no further call: the model reads that first."""
    if not await in_db(is_message_waiting)(claim.dialog_id):
        return False
    await in_db(_leave_unmade)(claim, calls)
    return True


def _leave_unmade(claim: Claim, calls: Sequence[ToolCall]) -> None:
    for call in calls:
        call.refresh_from_db(fields=["status", "started_at"])
        if call.status == ToolCall.Status.PENDING:
            words = BEGUN_BEFORE if call.started_at else NOT_BEGUN
            rounds.end_call(claim, call, failed=True, result=words)
    rounds.close_round(claim)


def grouped(calls: Iterable[ToolCall], tools: dict[str, Tool]) -> list[list[ToolCall]]:
    """Adjacent calls that may run at the same time form one group, every other call a group of its own."""
    groups: list[list[ToolCall]] = []
    beside = False
    for call in calls:
        tool = tools.get(call.name)
        parallel = isinstance(tool, OutsideTool) and tool.parallel
        if parallel and beside:
            groups[-1].append(call)
        else:
            groups.append([call])
        beside = parallel
    return groups


async def _make(claim: Claim, call: ToolCall, tools: dict[str, Tool], *, clears: bool = True) -> None:
    """Make one call and record its result."""
    try:
        tool = _known(call, tools)
        arguments = _arguments(call, tool)
    except ToolError as error:
        await in_db(rounds.end_call)(claim, call, failed=True, result=f"{error} {CORRECT_IT}")
        return
    if call.name == ASK_HUMAN:
        await ask_person(claim, call, arguments)
    elif call.name == CLEAR_MIND:
        clear = rounds.clear_mind if clears else rounds.keep_reminder
        await in_db(clear)(claim, call, reminder=arguments.get("reminder_content", ""))
    elif isinstance(tool, DialogTool):
        await in_db(_perform_here)(claim, call, tool, arguments)
    else:
        await perform_outside(claim, call, tool, arguments)


def _known(call: ToolCall, tools: dict[str, Tool]) -> Tool:
    if call.name not in tools:
        raise ToolError(f"{NO_SUCH_TOOL}{call.name!r}. There are: {', '.join(tools) or 'none'}.")
    return tools[call.name]


def _arguments(call: ToolCall, tool: Tool) -> dict[str, Any]:
    """The arguments, checked against the tool's schema. An empty text means none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except RecursionError as error:
        raise ToolError(f"{UNREADABLE}readable: they are nested too deep.") from error
    except ValueError as error:
        raise ToolError(f"{UNREADABLE}valid JSON ({error}).") from error
    if not isinstance(arguments, dict):
        raise ToolError(f"{UNREADABLE}a JSON object.")
    if problem := _misfit(arguments, tool):
        raise ToolError(f"{UNFIT}{problem}.")
    return arguments


def _misfit(arguments: Any, tool: Tool) -> str:
    """What does not fit the tool's schema, or is wrong with a foreign tool's schema itself; empty if nothing is."""
    try:
        if isinstance(tool, OutsideTool) and (problem := schemas.problem_of(tool.parameters)):
            return f"this tool cannot be called, as {problem}"
        problems = schemas.problems(arguments, tool.parameters)
        return f"the arguments do not fit: {'; '.join(problems)}" if problems else ""
    except jsonschema.SchemaError as error:
        return f"this tool describes itself wrongly: {error.message}"
    except RecursionError:
        return "the arguments, or this tool's description of them, are nested too deep"
    except Exception as error:
        # Unresolved references or huge numbers, for example: each library that jsonschema uses raises its own errors.
        logger.warning("Arguments of %s could not be checked: %r", tool.name, error)
        return f"the arguments cannot be checked against this tool's description: {error}"


def _perform_here(claim: Claim, call: ToolCall, tool: DialogTool, arguments: Arguments) -> None:
    """Run a DialogTool and record its result in one transaction, which is rolled back on failure."""
    try:
        rounds.perform(claim, call, lambda row: tool.perform(row, arguments))
    except (ToolError, DialogError) as error:
        rounds.end_call(claim, call, failed=True, result=str(error))


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
            after=seconds_left(call.started_at, call.retry_at) or 0.0,
        )
        failed = False
    except ToolError as error:
        failed, result = True, str(error)
    except TimeoutError:
        failed, result = True, f"The tool did not answer within {tool.timeout_seconds:g} s."
    except (LeaseLost, OperationalError, InterfaceError):
        # The database is away: the next worker finds the call recorded as begun.
        raise
    except Exception:
        logger.exception("Tool %s failed", call.name)
        failed, result = True, FAULT
    await in_db(rounds.end_call)(claim, call, failed=failed, result=result)


def _policy(*names: str) -> RetryPolicy:
    return context_config().retries_of(*names)


def key_of(claim: Claim, call: ToolCall) -> str:
    """The call's idempotency key: the same for every try and worker, and unique among all installations."""
    return str(uuid5(claim.dialog_id, str(call.pk)))


async def ask_person(claim: Claim, call: ToolCall, arguments: Arguments) -> None:
    """Store the question; retry while the database is away. The call is its key, so it is asked once."""

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
