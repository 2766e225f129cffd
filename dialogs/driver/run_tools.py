"""One round of tool calls: check, run, record; a question waits, clear_mind comes last.

Whatever goes wrong in a call is the call's result. Neighbours that are declared safe run side by side; results
keep the calls' order however they finish.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import jsonschema

from dialogs.agents.tools import schemas
from dialogs.agents.tools.base import Arguments, DialogTool, OutsideTool, Tool, ToolError
from dialogs.agents.tools.registry import tools_for
from dialogs.common.errors import DialogError
from dialogs.common.threads import in_db
from dialogs.driver.run_outside import ask_person, perform_outside
from dialogs.driver.streaming import end
from dialogs.driver.writes import rounds
from dialogs.models import ToolCall
from dialogs.transcript.reads.tool_calls import ASK_HUMAN, CLEAR_MIND, calls_of
from dialogs.turns.reads.turns import dialog_to_drive, is_message_waiting, is_stop_requested
from dialogs.turns.writes.lease import Claim

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.3
NOT_BEGUN = "Not made: the person has written something meanwhile. Read that first; call it again if it still fits."
BEGUN_BEFORE = (
    "Not made again: an earlier try was begun, and what it did is not known. The person has written something "
    "meanwhile. Read that first."
)
NO_MORE_ROUNDS = "Refused: this turn has made too many rounds of tool calls. Answer the person with what you have."


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
        # However often a round asks for it, one course begins.
        await _make(claim, call, tools, clears=call is clearing[-1])
    await in_db(rounds.close_round)(claim)


async def _is_interrupted(claim: Claim, calls: Sequence[ToolCall]) -> bool:
    """Where a person has typed something, no call is begun any more: the model reads it first."""
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
    """Neighbours that may run side by side stand in one group, every other call in a group of its own."""
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
    """Make one call and record what came of it."""
    try:
        tool = _known(call, tools)
        arguments = _arguments(call, tool)
    except ToolError as error:
        await in_db(rounds.end_call)(claim, call, failed=True, result=str(error))
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
        raise ToolError(f"There is no tool called {call.name!r}. There are: {', '.join(tools) or 'none'}.")
    return tools[call.name]


def _arguments(call: ToolCall, tool: Tool) -> dict[str, Any]:
    """The arguments, checked against the tool's schema. An empty text stands for none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except RecursionError as error:
        raise ToolError("The arguments are nested too deep. Call it again with a flatter JSON object.") from error
    except ValueError as error:
        raise ToolError(f"The arguments are not valid JSON ({error}). Call it again with a JSON object.") from error
    _check(arguments, tool)
    if not isinstance(arguments, dict):
        raise ToolError("The arguments are not a JSON object.")
    return arguments


def _check(arguments: Any, tool: Tool) -> None:
    """Raises ToolError for arguments that do not fit, and where a foreign tool's schema cannot be checked against."""
    try:
        if isinstance(tool, OutsideTool) and (problem := schemas.problem_of(tool.parameters)):
            raise ToolError(f"This tool cannot be called: {problem}.")
        schemas.check(arguments, tool.parameters)
    except ToolError:
        raise
    except jsonschema.ValidationError as error:
        raise ToolError(f"The arguments do not fit: {error.message} (at {error.json_path}).") from error
    except jsonschema.SchemaError as error:
        raise ToolError(f"This tool describes itself wrongly: {error.message}") from error
    except RecursionError as error:
        raise ToolError("The arguments, or this tool's description of them, are nested too deep.") from error
    except Exception as error:
        # References that lead nowhere, numbers without measure: each library of jsonschema's raises its own.
        logger.warning("Arguments of %s could not be checked: %r", tool.name, error)
        raise ToolError(f"The arguments cannot be checked against this tool's description: {error}") from error


def _perform_here(claim: Claim, call: ToolCall, tool: DialogTool, arguments: Arguments) -> None:
    """What it did and the record of it are one transaction; what it began before it failed is undone."""
    try:
        rounds.perform(claim, call, lambda row: tool.perform(row, arguments))
    except (ToolError, DialogError) as error:
        rounds.end_call(claim, call, failed=True, result=str(error))
