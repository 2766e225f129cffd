"""The messages of a client's history as rows, many at once; and what is known of an answer once it is made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from django.db.models import F

from dialogs.api.requests import ClientMessage
from dialogs.models import Course, Dialog, Message, MessageMark, PrefixNode, SearchText, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.attachments import large_texts, without_blobs
from dialogs.transcript.model_view import marks_of
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.search import index_words
from dialogs.turns.writes.generations import keep_blobs
from dominds.rows import FEW, insert, insert_all, insert_or_ignore, new

AT_ONCE = 500


def add_history(
    row: Dialog, messages: Sequence[ClientMessage], *, below: Message | None, course: Course
) -> list[Message]:
    """Append what a client sends; what is stored of it. Changes `row`, which the caller saves."""
    if not messages:
        return []
    hashes = keep_blobs(text for message in messages for text in large_texts(message.wire))
    parent, rows = below, list[Message]()
    for message in messages:
        parent = row_of(row, course, message, parent, hashes)
        rows.append(parent)
    insert_branch(rows)
    said = list(zip(rows, messages, strict=True))
    _add_calls(said)
    _close_calls(row, said)
    insert_all(
        new(SearchText, message=one, words=index_words(one.content, *(call.arguments for call in message.calls)))
        for one, message in said
    )
    insert_all(new(PrefixNode, owner_id=row.owner_id, sha256=message.prefix, message=one) for one, message in said)
    row.current_leaf = rows[-1]
    return rows


def row_of(
    row: Dialog, course: Course, said: ClientMessage, parent: Message | None, hashes: Mapping[str, str]
) -> Message:
    """As it is stored. Raises the dialog's `last_seq`."""
    row.last_seq += 1
    turn = parent.turn if parent else 0
    return new(
        Message,
        dialog=row,
        course=course,
        seq=row.last_seq,
        parent=parent,
        turn=turn + 1 if said.role == Role.USER else turn,
        role=said.role,
        origin=MessageOrigin.TOOL if said.role == Role.TOOL else MessageOrigin.CLIENT,
        content=said.text,
        parts=_parts(said, hashes),
    )


def _parts(said: ClientMessage, hashes: Mapping[str, str]) -> dict[str, Any]:
    wire = {"wire": without_blobs(said.wire, hashes)} if said.wire else {}
    return wire | ({"tool_call_id": said.tool_call_id} if said.role == Role.TOOL else {})


def insert_branch(rows: list[Message]) -> None:
    """Store rows of which each is the next one's parent. Parents have no id until then: where they are stored all at
    once, they are set once all have."""
    if len(rows) <= FEW:
        for row in rows:
            row.parent = row.parent
            insert(row)
        return
    parents = [row.parent for row in rows]
    first = rows[0].parent
    for row in rows:
        row.parent = first
    Message.objects.bulk_create(rows)
    for row, parent in zip(rows, parents, strict=True):
        row.parent = parent
    Message.objects.bulk_update(rows[1:], ["parent"], batch_size=AT_ONCE)


def _add_calls(said: Iterable[tuple[Message, ClientMessage]]) -> None:
    rows = [call for message, one in said for call in calls_of(message, one)]
    if rows:
        ToolCall.objects.bulk_create(rows)


def calls_of(message: Message, said: ClientMessage) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            message=message,
            position=position,
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            status=ToolCall.Status.CLIENT,
        )
        for position, call in enumerate(said.calls)
    )


def _close_calls(row: Dialog, said: Iterable[tuple[Message, ClientMessage]]) -> None:
    """Store the client's results, each on the newest call that it answers."""
    results = [(message, one.tool_call_id) for message, one in said if one.role == Role.TOOL]
    if not results:
        return
    open_calls = _open_calls(row, {call_id for _message, call_id in results})
    closed: list[ToolCall] = []
    for message, call_id in results:
        calls = open_calls.get(call_id, [])
        before = bisect_left(calls, message.seq, key=attrgetter("seq"))
        if before:
            call = calls.pop(before - 1)
            call.result_message, call.status = message, ToolCall.Status.DONE
            closed.append(call)
    ToolCall.objects.bulk_update(closed, ["result_message", "status"], batch_size=AT_ONCE)


def _open_calls(row: Dialog, ids: set[str]) -> dict[str, list[ToolCall]]:
    """By the ids that results name, oldest first. A dialog may be long: it is looked through once for all results."""
    found: dict[str, list[ToolCall]] = {}
    calls = ToolCall.objects.filter(message__dialog=row, call_id__in=ids, result_message=None)
    for call in calls.annotate(seq=F("message__seq")).order_by("seq", "-position"):
        found.setdefault(call.call_id, []).append(call)
    return found


def mark_frame(row: Dialog, messages: Sequence[ClientMessage]) -> None:
    """Mark messages that a client puts before every conversation, also where they are stored already."""
    hashes = [message.prefix for message in messages]
    found = Message.objects.filter(prefix_nodes__owner=row.owner_id, prefix_nodes__sha256__in=hashes)
    rows = [one for one in found.exclude(origin=MessageOrigin.AGENT).distinct() if not one.parts.get("framed")]
    for one in rows:
        one.parts = {**one.parts, "framed": True}
    Message.objects.bulk_update(rows, ["parts"], batch_size=AT_ONCE)


def keep_shortened(shortened: Mapping[int, str], branch: Sequence[Message] | None) -> None:
    """Store the shorter texts that a client sends for these messages; most are stored already."""
    found = Message.objects.filter(pk__in=shortened) if branch is None else (x for x in branch if x.pk in shortened)
    rows = [one for one in found if one.parts.get("shortened") != shortened[one.pk]]
    for one in rows:
        one.parts = {**one.parts, "shortened": shortened[one.pk]}
    Message.objects.bulk_update(rows, ["parts"], batch_size=AT_ONCE)


def carry_marks(row: Dialog, course: Course, added: Sequence[Message]) -> None:
    """After a client changed its history: copy a person's marks from the old branch to equal messages of the new one.
    `row` is not saved yet."""
    if row._state.adding or not any(one.role == Role.ASSISTANT for one in added[:-1]):
        return
    shown = Dialog.objects.filter(pk=row.pk).values("current_leaf")
    before = Message.objects.filter(pk__in=shown, course=course).first()
    marks = marks_of(course_branch(before))
    if not marks:
        return
    kept = {one.pk for one in course_branch(added[0].parent)}
    same = {_said(one): one for one in reversed(added)}
    for pk in sorted(marks.keys() - kept):
        if copy := same.pop(_said(marks[pk].message), None):
            mark = marks[pk]
            MessageMark.objects.create(message=copy, pinned=mark.pinned, priority=mark.priority, area=mark.area)


def _said(message: Message) -> tuple[str, str, str]:
    return message.role, message.content.strip(), message.parts.get("tool_call_id", "")


def remember(row: Dialog, *, message: Message, prefix: str) -> None:
    """Store the hash of the prefix that ends with this message."""
    insert_or_ignore(new(PrefixNode, owner_id=row.owner_id, sha256=prefix, message=message))
