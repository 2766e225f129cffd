"""Records tool calls, their results, and the results' messages. For a locked row.

Results become messages together, in the calls' order, once all calls of the round are closed: no request has a call
without a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, QuerySet
from django.utils import timezone

from dialogs.common.text import storable
from dialogs.llms.guard import may_be_guarded
from dialogs.models import Dialog, Message, Question, SearchText, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.tool_calls import calls_of, made_here, withheld_above
from dialogs.transcript.search import index_words
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.transcript.writes.task_snapshot import note_call
from dialogs.turns.prompts import level_word, prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dominds.prepared import prepared

if TYPE_CHECKING:
    from dialogs.providers.base import ToolCall as AskedCall

Status = ToolCall.Status
MAX_RESULT_CHARS = 200_000
STOPPED = "Stopped by the person. What the call had done by then is not known."
NOT_MADE = "Stopped by the person before it was made."
OVERTAKEN = "Withdrawn: a new course has begun."
ALONE = "Not made beside other calls. Call {name} alone."
INTERRUPTED = "Interrupted: the worker stopped in mid-call. The result is not known; the call was not repeated."


def add_calls(message: Message, asked: Sequence[AskedCall]) -> None:
    """Store the calls of an answer. An id that is missing, too long or in use is replaced: results refer to it."""
    taken: set[str] = set()
    rows: list[ToolCall] = []
    for position, call in enumerate(asked):
        usable = call.id and len(call.id) <= 200 and call.id not in taken
        call_id = call.id if usable else f"call_{message.pk}_{position}"
        taken.add(call_id)
        name, arguments = storable(call.name)[:200], storable(call.arguments)
        rows.append(ToolCall(message=message, position=position, call_id=call_id, name=name, arguments=arguments))
    ToolCall.objects.bulk_create(rows)
    words = index_words(message.content, *(text for row in rows for text in (row.name, row.arguments)))
    SearchText.objects.filter(message=message).update(words=words)


def hand_over(row: Dialog, message: Message) -> bool:
    """Leave the calls of the client's own tools to the client, if there are any: then the client is next.

    Calls of Dominds's tools in the same answer are not made: the client would wait for them.
    """
    ours = made_here(row) if row.client.offers_recall else ()
    if not ToolCall.objects.filter(message=message).exclude(name__in=ours).update(status=Status.CLIENT):
        return False
    for call in calls_of(message):
        if call.is_open:
            close_call(row, call, Status.FAILED, ALONE.format(name=call.name))
            _add_result(row, call)
    return True


def close_call(row: Dialog, call: ToolCall, status: str, result: str) -> None:
    """Record a call's result, in the caller's transaction."""
    text = storable(result)
    if len(text) > MAX_RESULT_CHARS:
        text = f"{text[:MAX_RESULT_CHARS]}\n[cut off: {len(text):,} characters in all]"
    call.status, call.result, call.finished_at = status, text, timezone.now()
    call.started_at = call.started_at or call.finished_at
    call.save(update_fields=["status", "result", "started_at", "finished_at"])


def interrupt_running(row: Dialog) -> None:
    """After a worker's death: its running calls that may be repeated become pending, others end as unknown."""
    for call in _running_of(row.current_leaf_id) if row.current_leaf_id else ():
        if call.idempotent:
            call.status = Status.PENDING
            call.save(update_fields=["status"])
        else:
            close_call(row, call, Status.INTERRUPTED, INTERRUPTED)


@prepared(BigIntegerField())
def _running_of(message_id: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(message=message_id, status=Status.RUNNING)


def withdraw_open_calls(row: Dialog, *, words: str = "") -> None:
    """Close the leaf's open calls because a person went on in another way, and add the results."""
    if row.current_leaf is None:
        return
    for call in calls_of(row.current_leaf):
        if call.is_open:
            close_call(row, call, Status.WITHDRAWN, words or (NOT_MADE if call.started_at is None else STOPPED))
            Question.objects.filter(tool_call=call).update(status=Question.Status.WITHDRAWN, answered_at=timezone.now())
    add_results(row)


def add_results(row: Dialog) -> None:
    """A tool message for each call of the leaf that has none yet. Changes `row`, which the caller saves.

    A client's own calls get results from the client only: its next request is compared with the stored messages.
    """
    if row.current_leaf is None:
        return
    for call in calls_of(row.current_leaf):
        if call.result_message_id is None and call.status != Status.CLIENT:
            _add_result(row, call)


def _add_result(row: Dialog, call: ToolCall) -> None:
    parts = {"tool_call_id": call.call_id}
    instead = _withheld(row, call)
    call.result_message = add_message(
        row,
        role=Role.TOOL,
        origin=MessageOrigin.TOOL,
        content=call.result,
        parent=row.current_leaf,
        parts=parts | ({"withheld": instead} if instead else {}),
    )
    note_call(row, call)
    # The message holds the text now.
    call.result = ""
    call.save(update_fields=["result", "result_message"])


def _withheld(row: Dialog, call: ToolCall) -> str:
    """The text in place of a result that is too large while room is short; empty if the result is sent."""
    dialog, level = dialog_to_drive(row.pk), call.message.course.level
    limit = withheld_above(dialog.llm, level=level, guarded=may_be_guarded(dialog))
    size = len(call.result.encode())
    if limit is None or size <= limit:
        return ""
    word = level_word(row.work_language, level)
    return prompt("withheld", language=row.work_language, size=size, limit=limit, level=word, name=call.name)
