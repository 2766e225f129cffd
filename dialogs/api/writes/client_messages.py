"""The messages of a client's history as rows, many at once; and what is known of an answer once it is made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from dialogs.api.canonical import ClientMessage
from dialogs.models import (
    ClientConversation,
    Course,
    Dialog,
    Message,
    MessageMark,
    PrefixNode,
    Reminder,
    SearchText,
    ToolCall,
    ViewChange,
)
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.attachments import large_texts, without_blobs
from dialogs.transcript.model_view import Entry, dump, holding, kept_since, load, marks_of, with_rounds
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.search import index_words
from dialogs.turns.writes.generations import keep_blobs
from dominds.rows import FEW, insert, insert_all, insert_or_ignore, new
from health.models import CompactionRun

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


Copies = Mapping[int, Message]
# Of a dialog, by a person.
CHOSEN = ("standing_rules", "compaction", "own_tools")
# Of a message.
SAID = ("turn", "role", "origin", "content", "parts", "cut_short")


def fork(end: Message, *, owner: User) -> tuple[Dialog, Course]:
    """A dialog at rest whose only branch is a copy of the messages up to `end`. The caller has a transaction and saves
    it."""
    source = end.dialog
    branch = course_branch(end)
    chosen = {name: getattr(source, name) for name in CHOSEN}
    row = Dialog.objects.create(
        owner=owner, agent=source.agent, llm=source.llm, active_at=timezone.now(), is_client_driven=True, **chosen
    )
    course = Course.objects.create(dialog=row, number=1)
    row.client = ClientConversation.objects.create(dialog=row, chat=source.client.chat)
    copies = _copied(branch, row, course)
    _copy_calls(copies)
    _copy_marks(copies)
    _copy_reminders(source, course)
    _copy_view(end.course, course, branch, copies)
    row.last_seq, row.current_leaf = len(branch), copies[end.pk]
    row.save(update_fields=["last_seq", "current_leaf"])
    return row, course


def _copied(branch: Sequence[Message], row: Dialog, course: Course) -> dict[int, Message]:
    """The copied messages by the ids of their originals, with their prefixes and search texts."""
    rows: list[Message] = []
    for seq, one in enumerate(branch, start=1):
        rows.append(
            Message(
                dialog=row,
                course=course,
                seq=seq,
                parent=rows[-1] if rows else None,
                **{name: getattr(one, name) for name in SAID},
            )
        )
    insert_branch(rows)
    copies = {one.pk: copy for one, copy in zip(branch, rows, strict=True)}
    words = dict(SearchText.objects.filter(message_id__in=copies).values_list("message_id", "words"))
    SearchText.objects.bulk_create(SearchText(message=copy, words=words.get(pk, "")) for pk, copy in copies.items())
    nodes = PrefixNode.objects.filter(message_id__in=copies)
    PrefixNode.objects.bulk_create(
        PrefixNode(owner_id=node.owner_id, sha256=node.sha256, message=copies[node.message_id]) for node in nodes
    )
    return copies


def _copy_calls(copies: Copies) -> None:
    """Copy the calls of the copied messages. A call without a copied result has none in the new dialog: the client
    sent the result elsewhere."""
    calls = list(ToolCall.objects.filter(message_id__in=copies))
    for call in calls:
        if call.result_message_id and call.result_message_id not in copies:
            call.status = ToolCall.Status.CLIENT
        call.pk = None
        call.message = copies[call.message_id]
        call.result_message = copies.get(call.result_message_id or 0)
    ToolCall.objects.bulk_create(calls)


def _copy_marks(copies: Copies) -> None:
    marks = list(MessageMark.objects.filter(message_id__in=copies))
    for mark in marks:
        mark.pk, mark.message = None, copies[mark.message_id]
    MessageMark.objects.bulk_create(marks)


def _copy_reminders(source: Dialog, course: Course) -> None:
    reminders = list(Reminder.objects.filter(dialog=source))
    for reminder in reminders:
        reminder.pk, reminder.dialog, reminder.course = None, course.dialog, course
    Reminder.objects.bulk_create(reminders)


def _copy_view(source: Course, course: Course, branch: Sequence[Message], copies: Copies) -> None:
    """Copy the newest view that holds on this branch, as a compaction run of the new dialog."""
    held = holding(source.head_run, copies)
    if held is None:
        return
    # Whole: what a request is not made of may not have been read with it, and is copied too.
    run = CompactionRun.objects.get(pk=held.pk)
    run.pk = None
    run.dialog, run.course, run.parent_run, run.leaf = course.dialog, course, None, copies[run.leaf_id]
    run.through_seq, run.turn = run.leaf.seq, run.leaf.turn
    run.view = dump(translated(entry, copies) for entry in shown_by(held, branch))
    run.removed = ids_of(run.removed, copies)
    run.coverage, run.losses = about(run.coverage, copies), about(run.losses, copies)
    run.save(force_insert=True)
    course.head_run = run
    course.save(update_fields=["head_run"])
    ViewChange.objects.create(course=course, after=run, why=ViewChange.Why.APPLIED)


def shown_by(run: CompactionRun, branch: Sequence[Message]) -> tuple[Entry, ...]:
    """The run's view, with what was marked to stay since it was made."""
    known = [message for message in branch if message.seq <= run.through_seq]
    return with_rounds(load(run.view), kept_since(run, [message.pk for message in known]), known)


def translated(entry: Entry, copies: Copies) -> Entry:
    """A view's entry with the ids of the copied messages."""
    message = copies.get(entry.message_id or 0)
    return Entry(
        message_id=message.pk if message else None,
        content=entry.content,
        kind=entry.kind,
        covers=tuple(ids_of(entry.covers, copies)),
    )


def ids_of(ids: Iterable[int], copies: Copies) -> list[int]:
    return [copies[pk].pk for pk in ids if pk in copies]


def about(rows: Iterable[dict[str, Any]], copies: Copies) -> list[dict[str, Any]]:
    """The engine names units by text: a message's id, or another name for what an earlier run wrote."""
    return [{**row, "message": _name(str(row["message"]), copies)} for row in rows]


def _name(name: str, copies: Copies) -> str:
    copy = copies.get(int(name)) if name.isdigit() else None
    return str(copy.pk) if copy else name
