"""From a checked dialog file to rows: new ids, many short transactions, and a dialog at rest.

SQLite lets nobody else write while a transaction lasts, and fifty thousand messages take half a minute. Until the last
of them is written the dialog lies in the trash: nobody goes on with half of it or takes it out, and what a killed
process leaves there goes with the rest of the trash.

Generations, calls, compactions and events are written in files of their own. What a client drove is written in the
browser from then on (`adapting.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.models import (
    Agent,
    AutonomousRun,
    Course,
    Dialog,
    Message,
    Question,
    QueuedMessage,
    RemediationPrompt,
    Reminder,
    SearchText,
    ToolCall,
)
from dialogs.transcript.attachments import large_texts, without_blobs
from dialogs.transcript.search import index_words
from dialogs.transcript.standing_rules import StandingRule, dump
from dialogs.transcript.writes.trash import erase_dialog
from dialogs.transfer.adapting import at_rest, with_sound_views
from dialogs.transfer.importing_records import (
    add,
    add_compactions,
    add_generations,
    add_marks,
    add_view_changes,
    llm_named,
    parts,
    put,
    set_heads,
)
from dialogs.transfer.reading import read_file
from dialogs.transfer.shape import (
    CallEntry,
    CarriedEntry,
    CourseEntry,
    DialogFile,
    MessageEntry,
    PromptEntry,
    QuestionEntry,
    ReminderEntry,
)
from dialogs.transfer.shape_views import EventEntry, TaskEntry
from dialogs.turns.writes.generations import keep_blobs
from health.compaction.snapshot import TaskSnapshot, as_json
from health.models import CompactionRun, ContextEvent

Courses = dict[int, Course]
Messages = dict[int, Message]


def import_dialog(*, owner: User, data: object, agent: Agent | None = None) -> Dialog:
    """Add the dialog in `data` (parsed JSON) to this person's. Raises DialogError that names the place.

    It speaks to the agent with the file's slug, else to `agent`, else to the first one that is enabled.
    """
    file = with_sound_views(at_rest(read_file(data)))
    dialog = _begin(owner, file, _agent(file.agent, agent))
    try:
        _write(dialog, file)
    except BaseException as error:
        if not _is_dropped(dialog) and isinstance(error, DatabaseError):
            raise DialogError(_("The dialog was erased while it was being imported.")) from error
        raise
    return dialog


def _is_dropped(dialog: Dialog) -> bool:
    """Erase what was written. False where somebody has done so already."""
    with suppress(Dialog.DoesNotExist):
        erase_dialog(dialog=dialog)
        return True
    return False


def _agent(slug: str, fallback: Agent | None) -> Agent:
    enabled = Agent.objects.filter(enabled=True, is_direct=False)
    found = enabled.filter(slug=slug).first() or fallback or enabled.first()
    if found is None:
        raise DialogError(_("There is no agent to go on with. An admin must add one first."))
    return found


def _begin(owner: User, file: DialogFile, agent: Agent) -> Dialog:
    return Dialog.objects.create(
        owner=owner,
        agent=agent,
        llm=llm_named(file.llm) or agent.llm,
        title=file.title,
        titled_by_person=file.titled_by_person,
        work_language=file.work_language,
        compaction=file.compaction,
        own_tools=file.own_tools,
        taskdoc=file.taskdoc,
        standing_rules=dump(StandingRule(**asdict(entry)) for entry in file.standing_rules),
        task_snapshot=task_of(file.task),
        active_at=file.active_at,
        last_seq=max((entry.seq for entry in file.messages), default=0),
        trashed_at=timezone.now(),
    )


def _write(dialog: Dialog, file: DialogFile) -> None:
    words = search_words(file)
    courses = _add_courses(dialog, file.courses)
    messages: Messages = {}
    # A parent has a lower `seq` than its child.
    for said in parts(sorted(file.messages, key=attrgetter("seq"))):
        _add_messages(dialog, said, courses, messages, words)
    runs = _add_views(dialog, file, courses, messages)
    for tried in parts(file.generations):
        add_generations(file, tried, courses, messages, runs)
    questions: Questions = {}
    for made in parts(file.calls):
        questions |= add_calls(made, messages)
    _add_rest(dialog, file, courses, messages, questions)


@transaction.atomic
def _add_views(dialog: Dialog, file: DialogFile, courses: Courses, messages: Messages) -> Runs:
    runs = add_compactions(file.compactions, courses, messages)
    add_marks(file.marks, messages)
    set_heads(file.courses, courses, runs)
    add_view_changes(file.view_changes, courses, runs)
    add_events(dialog, file.events, courses, messages, runs)
    return runs


@transaction.atomic
def _add_rest(dialog: Dialog, file: DialogFile, courses: Courses, messages: Messages, questions: Questions) -> None:
    add_prompts(file.prompts, messages)
    _add_reminders(dialog, file.reminders, courses)
    add(AutonomousRun, [AutonomousRun(dialog=dialog, **asdict(entry)) for entry in file.runs], file.runs, "started_at")
    queued = [QueuedMessage(dialog=dialog, **asdict(entry)) for entry in file.queued]
    add(QueuedMessage, queued, file.queued, "created_at")
    _carry(file.courses, courses, messages, questions)
    _finish(dialog, file, messages)


def _finish(dialog: Dialog, file: DialogFile, messages: Messages) -> None:
    """Where the file shows no message the newest is shown: by one that is shown it is known that all are there."""
    leaf = max(messages, default=None) if file.current_leaf is None else file.current_leaf
    dialog.trashed_at = None
    dialog.created_at = file.created_at
    dialog.current_leaf = messages[leaf] if leaf is not None else None
    # `update_fields` writes only where the row is still there.
    dialog.save(update_fields=["trashed_at", "created_at", "current_leaf"])


def _add_courses(dialog: Dialog, entries: tuple[CourseEntry, ...]) -> Courses:
    """The courses by number. What was carried into them, and which view holds, is set once those rows are there."""
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
    put(Course, [courses[number] for number in carried], "carried")


def _carried(entry: CarriedEntry, messages: Messages, questions: Questions) -> dict[str, Any]:
    """The column `carried`, as `driver.writes.courses` writes it: messages and questions by id."""
    return {
        "reminders": list(entry.reminders),
        "taskdoc": entry.taskdoc,
        "request": messages[entry.request].pk if entry.request is not None else None,
        "questions": [questions[place.message, place.position].pk for place in entry.questions],
    }


@transaction.atomic
def _add_messages(
    dialog: Dialog, entries: Sequence[MessageEntry], courses: Courses, messages: Messages, words: dict[int, str]
) -> None:
    """To `messages`, by `seq`. Parents are set afterwards: a row cannot point at one that has no id yet."""
    kept = keep_blobs(text for entry in entries for text in large_texts(entry.parts.get("wire", {})))
    rows = {entry.seq: _message(dialog, entry, courses, kept) for entry in entries}
    add(Message, rows.values(), entries, "created_at")
    messages |= rows
    children = [(rows[entry.seq], messages[entry.parent]) for entry in entries if entry.parent is not None]
    for child, parent in children:
        child.parent = parent
    put(Message, [child for child, _parent in children], "parent")
    SearchText.objects.bulk_create(SearchText(message=row, words=words[seq]) for seq, row in rows.items())


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


# --- What an agent did and what it was asked to do, written from a checked dialog file ---
# Questions by the message that asked, and the place of the call in it.
Questions = dict[tuple[int, int], Question]


@transaction.atomic
def add_calls(entries: Sequence[CallEntry], messages: dict[int, Message]) -> Questions:
    """Add the calls and the questions that they ask."""
    rows = add(ToolCall, [_call(entry, messages) for entry in entries], entries)
    asked = [(row, entry, entry.question) for row, entry in zip(rows, entries, strict=True) if entry.question]
    questions = add(
        Question,
        [_question(row, question) for row, _entry, question in asked],
        [question for _row, _entry, question in asked],
        "asked_at",
    )
    places = [(entry.message, entry.position) for _row, entry, _question in asked]
    return dict(zip(places, questions, strict=True))


def _call(entry: CallEntry, messages: dict[int, Message]) -> ToolCall:
    result = messages[entry.result_message] if entry.result_message is not None else None
    fields = asdict(entry) | {"message": messages[entry.message], "result_message": result}
    fields.pop("question")
    return ToolCall(**fields)


def _question(call: ToolCall, entry: QuestionEntry) -> Question:
    return Question(dialog=call.message.dialog, tool_call=call, **asdict(entry))


def add_prompts(entries: tuple[PromptEntry, ...], messages: dict[int, Message]) -> None:
    rows = [_prompt(entry, messages[entry.message]) for entry in entries]
    add(RemediationPrompt, rows, entries, "created_at")


def _prompt(entry: PromptEntry, message: Message) -> RemediationPrompt:
    return RemediationPrompt(dialog=message.dialog, course=message.course, **asdict(entry) | {"message": message})


def search_words(file: DialogFile) -> dict[int, str]:
    """What a search looks through, by `seq`: each message with the calls that it makes."""
    asked: defaultdict[int, list[str]] = defaultdict(list)
    for entry in file.calls:
        asked[entry.message].extend((entry.name, entry.arguments))
    return {entry.seq: index_words(entry.content, *asked[entry.seq]) for entry in file.messages}


# --- The task's snapshot and the events of a dialog's context, written from a checked dialog file ---
# By number.
Runs = dict[int, CompactionRun]
FACTS = ("turn", "trigger", "cause", "reason", "compactions")


def task_of(entry: TaskEntry | None) -> dict[str, Any]:
    return as_json(TaskSnapshot(**asdict(entry))) if entry else {}


def add_events(
    dialog: Dialog, entries: tuple[EventEntry, ...], courses: Courses, messages: Messages, runs: Runs
) -> None:
    llms = {slug: llm_named(slug) for slug in {entry.llm for entry in entries}}
    rows = [
        ContextEvent(
            code=entry.code,
            dialog=dialog,
            owner=dialog.owner,
            run=runs[entry.run] if entry.run is not None else None,
            llm=llms[entry.llm],
            estimated=entry.estimated,
            limit=entry.limit,
            facts=_facts(entry, courses, messages),
        )
        for entry in entries
    ]
    add(ContextEvent, rows, entries, "happened_at")


def _facts(entry: EventEntry, courses: Courses, messages: Messages) -> dict[str, Any]:
    """The column `facts`, as `turns.writes.events` writes it: only what is known, messages and courses by id."""
    facts = {name: getattr(entry, name) for name in FACTS}
    facts["course"] = courses[entry.course].pk if entry.course is not None else None
    facts["message"] = messages[entry.message].pk if entry.message is not None else None
    return {name: value for name, value in facts.items() if value not in (None, "")}
