"""A copy of a client's conversation up to one message, for a second request from there while the first runs.

Copied are messages, calls and prefixes; the view in force, so that nothing is compacted again; a person's rules, marks
and choices; and reminders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.api.writes.client_messages import insert_branch
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
from dialogs.transcript.model_view import Entry, dump, holding, kept_since, load, with_rounds
from dialogs.transcript.reads.path import course_branch
from health.models import CompactionRun

Copies = Mapping[int, Message]
# Of a dialog, by a person.
CHOSEN = ("standing_rules", "compaction", "own_tools")


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
                turn=one.turn,
                role=one.role,
                origin=one.origin,
                content=one.content,
                parts=one.parts,
                cut_short=one.cut_short,
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
