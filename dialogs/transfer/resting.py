"""A dialog file as of a dialog at rest: nobody answers, asks, calls or runs in an imported one. Pure.

Whatever went on when the file was made ended then: the file's own moment is the end's.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from dialogs.models import AutonomousRun, Generation, Question, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.transfer.laws_of_calls import rounds
from dialogs.transfer.shape import CallEntry, DialogFile, GenerationEntry, MessageEntry, QuestionEntry, RunEntry

UNANSWERED = "Not answered: the client had not sent the result when the dialog was exported."
INTERRUPTED = "Interrupted: the dialog was exported in the middle of this call. Its result is not known."


def at_rest(file: DialogFile) -> DialogFile:
    """The file with everything ended that was going on, and with a result for every call."""
    return _with_results(
        replace(
            file,
            generations=tuple(_ended_generation(entry) for entry in file.generations),
            calls=tuple(_ended_call(entry, file.exported_at) for entry in file.calls),
            runs=tuple(_ended_run(entry, file.exported_at) for entry in file.runs),
        )
    )


def _ended_generation(entry: GenerationEntry) -> GenerationEntry:
    running = entry.status == Generation.Status.RUNNING
    return replace(entry, status=Generation.Status.INTERRUPTED.value) if running else entry


def _ended_call(entry: CallEntry, now: datetime) -> CallEntry:
    question = _ended_question(entry.question, now) if entry.question else None
    if entry.status == ToolCall.Status.CLIENT and entry.result_message is None:
        return replace(entry, status=ToolCall.Status.WITHDRAWN.value, result=UNANSWERED, finished_at=now)
    if entry.status not in ToolCall.OPEN:
        return replace(entry, question=question)
    interrupted = ToolCall.Status.INTERRUPTED.value
    result = "" if entry.result_message else INTERRUPTED
    return replace(entry, question=question, status=interrupted, result=result, finished_at=now)


def _ended_question(entry: QuestionEntry, now: datetime) -> QuestionEntry:
    if entry.status != Question.Status.PENDING:
        return entry
    return replace(entry, status=Question.Status.WITHDRAWN.value, answered_at=now)


def _ended_run(entry: RunEntry, now: datetime) -> RunEntry:
    if entry.ended_at is not None:
        return entry
    return replace(entry, ended_at=now, ended_by=AutonomousRun.EndedBy.PERSON.value)


def _with_results(file: DialogFile) -> DialogFile:
    """Open rounds closed as `services.tool_calls.add_results` would: results as messages below their caller."""
    messages = {message.seq: message for message in file.messages}
    results: dict[tuple[int, int], int] = {}
    seq, leaf = max(messages, default=0), file.current_leaf
    for caller, calls in rounds(file).items():
        above = messages[caller]
        for call in calls:
            if call.result_message is None:
                seq += 1
                above = messages[seq] = _result(call, seq=seq, above=above, now=file.exported_at)
                results[call.message, call.position] = seq
        leaf = above.seq if leaf == caller else leaf
    calls_now = tuple(_answered(call, results.get((call.message, call.position))) for call in file.calls)
    return replace(file, messages=tuple(messages.values()), calls=calls_now, current_leaf=leaf)


def _answered(call: CallEntry, result: int | None) -> CallEntry:
    # The message holds the text now.
    return call if result is None else replace(call, result="", result_message=result)


def _result(call: CallEntry, *, seq: int, above: MessageEntry, now: datetime) -> MessageEntry:
    return MessageEntry(
        seq=seq,
        parent=above.seq,
        course=above.course,
        turn=above.turn,
        role=Role.TOOL.value,
        origin=MessageOrigin.TOOL.value,
        content=call.result,
        parts={"tool_call_id": call.call_id},
        cut_short=False,
        created_at=now,
    )
