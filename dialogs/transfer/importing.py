"""From a checked dialog file to rows: new ids, one transaction, and a dialog at rest.

Generations, calls, compactions and events are written in files of their own. What a client drove is written in the
browser from then on (`ordinary.py`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.attachments import large_texts, without_blobs
from dialogs.errors import DialogError
from dialogs.models import Agent, AutonomousRun, Course, Dialog, Message, QueuedMessage, Reminder
from dialogs.services.generations import keep_blobs
from dialogs.standing_rules import StandingRule, dump
from dialogs.transfer.adding import BATCH, add
from dialogs.transfer.importing_calls import Questions, add_calls, add_prompts, add_search_texts
from dialogs.transfer.importing_events import add_events, task_of
from dialogs.transfer.importing_generations import add_generations, llm_named
from dialogs.transfer.importing_views import add_compactions, add_marks, add_view_changes, set_heads
from dialogs.transfer.reading import read_file
from dialogs.transfer.resting import at_rest
from dialogs.transfer.shape import CarriedEntry, CourseEntry, DialogFile, MessageEntry, ReminderEntry
from dialogs.transfer.sound_views import with_sound_views

Courses = dict[int, Course]
Messages = dict[int, Message]


def import_dialog(*, owner: User, data: object, agent: Agent | None = None) -> Dialog:
    """Add the dialog in `data` (parsed JSON) to this person's. Raises DialogError that names the place.

    It speaks to the agent with the file's slug, else to `agent`, else to the first one that is enabled.
    """
    file = with_sound_views(at_rest(read_file(data)))
    return _write(owner, file, _agent(file.agent, agent))


def _agent(slug: str, fallback: Agent | None) -> Agent:
    enabled = Agent.objects.filter(enabled=True, is_direct=False)
    found = enabled.filter(slug=slug).first() or fallback or enabled.first()
    if found is None:
        raise DialogError(_("There is no agent to go on with. An admin must add one first."))
    return found


@transaction.atomic
def _write(owner: User, file: DialogFile, agent: Agent) -> Dialog:
    dialog = Dialog.objects.create(
        owner=owner,
        agent=agent,
        llm=llm_named(file.llm) or agent.llm,
        title=file.title,
        titled_by_person=file.titled_by_person,
        work_language=file.work_language,
        compaction=file.compaction,
        taskdoc=file.taskdoc,
        standing_rules=dump(StandingRule(**asdict(entry)) for entry in file.standing_rules),
        task_snapshot=task_of(file.task),
        active_at=file.active_at,
        last_seq=max((entry.seq for entry in file.messages), default=0),
    )
    courses = _add_courses(dialog, file.courses)
    messages = _add_messages(dialog, file.messages, courses)
    runs = add_compactions(file.compactions, courses, messages)
    add_marks(file.marks, messages)
    set_heads(file.courses, courses, runs)
    add_view_changes(file.view_changes, courses, runs)
    add_events(dialog, file.events, courses, messages, runs)
    add_generations(file, courses, messages, runs)
    questions = add_calls(file.calls, messages)
    add_search_texts(file.calls, messages)
    add_prompts(file.prompts, messages)
    _add_reminders(dialog, file.reminders, courses)
    add(AutonomousRun, [AutonomousRun(dialog=dialog, **asdict(entry)) for entry in file.runs], file.runs, "started_at")
    queued = [QueuedMessage(dialog=dialog, **asdict(entry)) for entry in file.queued]
    add(QueuedMessage, queued, file.queued, "created_at")
    _carry(file.courses, courses, messages, questions)
    _finish(dialog, file, messages)
    return dialog


def _finish(dialog: Dialog, file: DialogFile, messages: Messages) -> None:
    dialog.created_at = file.created_at
    dialog.current_leaf = messages[file.current_leaf] if file.current_leaf is not None else None
    dialog.save()


def _add_courses(dialog: Dialog, entries: tuple[CourseEntry, ...]) -> Courses:
    """By number. What was carried into them, and which view holds, is set when it is there."""
    rows = [Course(dialog=dialog, **_without_head(entry) | {"carried": {}}) for entry in entries]
    return {row.number: row for row in add(Course, rows, entries, "opened_at")}


def _without_head(entry: CourseEntry) -> dict[str, Any]:
    fields = asdict(entry)
    fields.pop("head")
    return fields


def _carry(entries: tuple[CourseEntry, ...], courses: Courses, messages: Messages, questions: Questions) -> None:
    carried = {entry.number: entry.carried for entry in entries if entry.carried is not None}
    for number, entry in carried.items():
        courses[number].carried = _carried(entry, messages, questions)
    Course.objects.bulk_update([courses[number] for number in carried], ["carried"], batch_size=BATCH)


def _carried(entry: CarriedEntry, messages: Messages, questions: Questions) -> dict[str, Any]:
    """As `services.courses` writes it: messages and questions by id."""
    return {
        "reminders": list(entry.reminders),
        "taskdoc": entry.taskdoc,
        "request": messages[entry.request].pk if entry.request is not None else None,
        "questions": [questions[place.message, place.position].pk for place in entry.questions],
    }


def _add_messages(dialog: Dialog, entries: tuple[MessageEntry, ...], courses: Courses) -> Messages:
    """By `seq`. Parents are set afterwards, because a row cannot point at one that has no id yet."""
    kept = keep_blobs(text for entry in entries for text in large_texts(entry.parts.get("wire", {})))
    rows = {entry.seq: _message(dialog, entry, courses, kept) for entry in entries}
    add(Message, rows.values(), entries, "created_at")
    children = [(rows[entry.seq], rows[entry.parent]) for entry in entries if entry.parent is not None]
    for child, parent in children:
        child.parent = parent
    Message.objects.bulk_update([child for child, _parent in children], ["parent"], batch_size=BATCH)
    return rows


def _message(dialog: Dialog, entry: MessageEntry, courses: Courses, kept: dict[str, str]) -> Message:
    fields = asdict(entry) | {"course": courses[entry.course]}
    if "wire" in entry.parts:
        fields["parts"] = entry.parts | {"wire": without_blobs(entry.parts["wire"], kept)}
    fields.pop("parent")
    return Message(dialog=dialog, **fields)


def _add_reminders(dialog: Dialog, entries: tuple[ReminderEntry, ...], courses: Courses) -> None:
    rows = [
        Reminder(dialog=dialog, **asdict(entry) | {"course": courses[entry.course] if entry.course else None})
        for entry in entries
    ]
    add(Reminder, rows, entries, "created_at", "updated_at")
