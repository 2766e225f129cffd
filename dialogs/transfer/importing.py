"""Imports a dialog file: checks each field and the whole, then inserts its rows with new ids.

Rows are inserted in many short transactions: SQLite has one writer at a time, and fifty thousand messages take half a
minute. Until the last row is inserted the dialog is in the trash and cannot be restored, so nobody uses half of it, and
what a killed process leaves is erased with the trash.

The file does not say who marked messages or started compactions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

from dialogs.common.errors import DialogError
from dialogs.common.file_fields import path_of, problems_of
from dialogs.models import (
    LLM,
    Agent,
    AutonomousRun,
    Course,
    Dialog,
    Generation,
    Message,
    MessageMark,
    Question,
    QueuedMessage,
    RemediationPrompt,
    Reminder,
    SearchText,
    ToolCall,
    ViewChange,
)
from dialogs.models.dialog import OwnTools
from dialogs.models.llm import Compaction
from dialogs.transcript import model_view
from dialogs.transcript.attachments import large_texts, without_blobs
from dialogs.transcript.search import index_words
from dialogs.transcript.standing_rules import StandingRule, dump
from dialogs.transcript.writes.dialog_row import erase_dialog
from dialogs.transfer import shape, shape_views
from dialogs.transfer.adapting import as_ordinary, at_rest, with_sound_views
from dialogs.transfer.laws import check_whole, judged_by, refuse, usage_of
from dialogs.transfer.references import Numbered, Rows, batches, columns, insert_entries, insert_rows, update_columns
from dialogs.transfer.shape import FORMAT, DialogFile
from dialogs.turns.writes.generations import keep_blobs
from health.compaction.snapshot import TaskSnapshot, as_json
from health.models import CompactionRun, ContextEvent, HealthReading
from health.monitor.levels import read


class NoAgent(DialogError):
    """An imported dialog needs an agent, and there is none."""


def import_dialog(*, owner: User, data: object, agent: Agent | None = None) -> Dialog:
    """Import `data` (parsed JSON) as a dialog of this person. Raises a DialogError that names the wrong place.

    Its agent is the one with the file's slug, else `agent`, else the first enabled one.
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
    """Erase what was inserted. False where somebody has erased it already."""
    with suppress(Dialog.DoesNotExist):
        erase_dialog(dialog=dialog)
        return True
    return False


def _agent(slug: str, fallback: Agent | None) -> Agent:
    enabled = Agent.objects.filter(enabled=True, is_direct=False)
    found = enabled.filter(slug=slug).first() or fallback or enabled.first()
    if found is None:
        raise NoAgent(_("There is no agent to go on with. An admin must add one first."))
    return found


def _begin(owner: User, file: shape.DialogFile, agent: Agent) -> Dialog:
    return Dialog.objects.create(
        owner=owner,
        agent=agent,
        llm=_llm_named(file.llm) or agent.llm,
        title=file.title,
        titled_by_person=file.titled_by_person,
        work_language=file.work_language,
        compaction=file.compaction,
        own_tools=file.own_tools,
        taskdoc=file.taskdoc,
        standing_rules=dump(StandingRule(**vars(entry)) for entry in file.standing_rules),
        task_snapshot=as_json(TaskSnapshot(**vars(file.task))) if file.task else {},
        active_at=file.active_at,
        last_seq=max((entry.seq for entry in file.messages), default=0),
        trashed_at=timezone.now(),
    )


def _write(dialog: Dialog, file: shape.DialogFile) -> None:
    rows: Rows = {"courses": _add_courses(dialog, file.courses), "messages": {}, "compactions": {}}
    words = _search_words(file)
    # A parent has a lower `seq` than its child.
    for said in batches(sorted(file.messages, key=attrgetter("seq"))):
        _add_messages(dialog, said, rows, words)
    _add_views(dialog, file, rows)
    for tried in batches(file.generations):
        _add_generations(dialog, file, tried, rows)
    questions: Questions = {}
    for made in batches(file.calls):
        questions |= _add_calls(dialog, made, rows)
    _add_rest(dialog, file, rows, questions)


def _llm_named(slug: str) -> LLM | None:
    provider, _slash, model_id = slug.partition("/")
    return LLM.objects.filter(provider__name=provider, model_id=model_id).first()


def _add_courses(dialog: Dialog, entries: tuple[shape.CourseEntry, ...]) -> Numbered:
    """The courses by number. `carried` and `head_run` are set later, when the rows that they refer to exist."""
    courses = insert_entries(Course, entries, {}, without={"head"}, dialog=dialog, carried={})
    return {row.number: row for row in courses}


@transaction.atomic
def _add_messages(dialog: Dialog, entries: Sequence[shape.MessageEntry], rows: Rows, words: dict[int, str]) -> None:
    """Insert messages and add them to `rows`. Parents are set afterwards, when all have ids."""
    kept = keep_blobs(text for entry in entries for text in large_texts(entry.parts.get("wire", {})))
    messages = {entry.seq: _message(dialog, entry, rows, kept) for entry in entries}
    insert_rows(Message, messages.values(), entries)
    rows["messages"] |= messages
    for entry in entries:
        messages[entry.seq].parent = rows["messages"].get(entry.parent or 0)
    update_columns(Message, [row for row in messages.values() if row.parent], "parent")
    SearchText.objects.bulk_create(SearchText(message=row, words=words[seq]) for seq, row in messages.items())


def _message(dialog: Dialog, entry: shape.MessageEntry, rows: Rows, kept: dict[str, str]) -> Message:
    fields = columns(entry, rows, without={"parent"})
    if "wire" in entry.parts:
        fields["parts"] = entry.parts | {"wire": without_blobs(entry.parts["wire"], kept)}
    return Message(dialog=dialog, **fields)


def _search_words(file: shape.DialogFile) -> dict[int, str]:
    """The search words of each message and its calls, by `seq`."""
    asked: defaultdict[int, list[str]] = defaultdict(list)
    for entry in file.calls:
        asked[entry.message].extend((entry.name, entry.arguments))
    return {entry.seq: index_words(entry.content, *asked[entry.seq]) for entry in file.messages}


@transaction.atomic
def _add_views(dialog: Dialog, file: shape.DialogFile, rows: Rows) -> None:
    rows["compactions"] = _add_compactions(dialog, file.compactions, rows)
    insert_entries(MessageMark, file.marks, rows)
    for entry in file.courses:
        rows["courses"][entry.number].head_run = rows["compactions"].get(entry.head or 0)
    update_columns(Course, list(rows["courses"].values()), "head_run")
    insert_entries(ViewChange, file.view_changes, rows)
    _add_events(dialog, file.events, rows)


def _add_compactions(dialog: Dialog, entries: tuple[shape_views.CompactionEntry, ...], rows: Rows) -> Numbered:
    added = insert_rows(CompactionRun, [_run(dialog, entry, rows) for entry in entries], entries)
    runs: Numbered = {entry.number: row for entry, row in zip(entries, added, strict=True)}
    for entry in entries:
        runs[entry.number].parent_run = runs.get(entry.parent or 0)
    update_columns(CompactionRun, added, "parent_run")
    return runs


def _run(dialog: Dialog, entry: shape_views.CompactionEntry, rows: Rows) -> CompactionRun:
    fields = columns(entry, rows, without={"number", "parent"})
    messages = rows["messages"]
    changed: dict[str, Any] = {
        "through_seq": entry.leaf,
        "limit_trace": [vars(term) for term in entry.limit_trace],
        "steps": [vars(step) for step in entry.steps],
        "ledger": [vars(kept) for kept in entry.ledger],
        "view": model_view.dump(_view_entry(seen, messages) for seen in entry.view),
        "removed": _ids(entry.removed, messages),
        "coverage": [_about_message(receipt, messages) for receipt in entry.coverage],
        "losses": [_about_message(loss, messages) for loss in entry.losses],
    }
    return CompactionRun(dialog=dialog, **fields | changed)


def _view_entry(entry: shape_views.ViewEntry, messages: Numbered) -> model_view.Entry:
    message_id = messages[entry.message].pk if entry.message is not None else None
    covers = tuple(_ids(entry.covers, messages))
    return model_view.Entry(message_id=message_id, content=entry.content, kind=entry.kind, covers=covers)


def _ids(seqs: Iterable[int], messages: Numbered) -> list[int]:
    return [messages[seq].pk for seq in seqs]


def _about_message(entry: shape_views.ReceiptEntry | shape_views.LossEntry, messages: Numbered) -> dict[str, Any]:
    """Unit ids are texts; empty where the file names no message."""
    return vars(entry) | {"message": str(messages[entry.message].pk) if entry.message is not None else ""}


def _add_events(dialog: Dialog, entries: tuple[shape_views.EventEntry, ...], rows: Rows) -> None:
    llms = {slug: _llm_named(slug) for slug in {entry.llm for entry in entries}}
    events = [_event(dialog, columns(entry, rows) | {"llm": llms[entry.llm]}) for entry in entries]
    insert_rows(ContextEvent, events, entries)


def _event(dialog: Dialog, fields: dict[str, Any]) -> ContextEvent:
    """`facts` as `turns.writes.events` writes it: known values only, messages and courses by id."""
    facts = {name: fields.pop(name) for name in ("turn", "trigger", "cause", "reason", "compactions")}
    for name in ("course", "message"):
        facts[name] = getattr(fields.pop(name), "pk", None)
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    return ContextEvent(dialog=dialog, owner=dialog.owner, facts=known, **fields)


@transaction.atomic
def _add_generations(
    dialog: Dialog, file: shape.DialogFile, entries: Sequence[shape.GenerationEntry], rows: Rows
) -> None:
    """Insert generations with readings. Their texts are stored in the same transaction, before a sweep can drop
    them."""
    llms = {name: _llm_named(name) for name in {entry.llm for entry in entries}}
    hashes = _keep_texts(file, entries)
    generations = [
        _generation(dialog, entry, rows, llm=llms[entry.llm], manifest=_manifest(entry.sent, hashes, rows))
        for entry in entries
    ]
    insert_rows(Generation, generations, entries)
    judged = [(row, one, one.reading) for row, one in zip(generations, entries, strict=True) if one.reading]
    readings = [_reading(row, entry, reading) for row, entry, reading in judged]
    insert_rows(HealthReading, readings, [reading for _row, _entry, reading in judged])


def _keep_texts(file: shape.DialogFile, entries: Sequence[shape.GenerationEntry]) -> dict[int, str]:
    """Store the texts that these entries refer to; their hashes by index."""
    used = {index for entry in entries for index in entry.sent.texts.values()}
    kept = keep_blobs(file.texts[index] for index in used)
    return {index: kept[file.texts[index]] for index in used}


def _manifest(sent: shape.SentEntry, hashes: dict[int, str], rows: Rows) -> dict[str, Any]:
    """The manifest as `turns.writes.generations` writes it."""
    return {
        "messages": _ids(sent.messages, rows["messages"]),
        "options": sent.options,
        **({"view": rows["compactions"][sent.view].pk} if sent.view is not None else {}),
        **({"estimated": sent.estimated} if sent.estimated is not None else {}),
        **{key: hashes[index] for key, index in sent.texts.items()},
    }


def _generation(dialog: Dialog, entry: shape.GenerationEntry, rows: Rows, **changed: Any) -> Generation:
    fields = columns(entry, rows, without={"sent", "usage", "reading"})
    counts = vars(entry.usage) if isinstance(entry.usage, shape.UsageEntry) else {}
    return Generation(dialog=dialog, fencing_token=0, llm_name=entry.llm, **fields | counts | changed)


def _reading(row: Generation, entry: shape.GenerationEntry, reading: shape.ReadingEntry) -> HealthReading:
    verdict = read(usage_of(entry), judged_by(reading))
    return HealthReading(
        generation=row,
        prompt_tokens=verdict.prompt_tokens,
        hard_util=verdict.hard_util,
        optimal_util=verdict.optimal_util,
        **vars(reading),
    )


# By the message and position of the call that asks.
Questions = dict[tuple[int, int], Question]


@transaction.atomic
def _add_calls(dialog: Dialog, entries: Sequence[shape.CallEntry], rows: Rows) -> Questions:
    """Insert calls and their questions."""
    calls = insert_entries(ToolCall, entries, rows, without={"question"})
    asked = [(row, entry, entry.question) for row, entry in zip(calls, entries, strict=True) if entry.question]
    questions = [Question(dialog=dialog, tool_call=row, **vars(question)) for row, _entry, question in asked]
    insert_rows(Question, questions, [question for _row, _entry, question in asked])
    places = [(entry.message, entry.position) for _row, entry, _question in asked]
    return dict(zip(places, questions, strict=True))


@transaction.atomic
def _add_rest(dialog: Dialog, file: shape.DialogFile, rows: Rows, questions: Questions) -> None:
    prompts = [_prompt(dialog, columns(entry, rows)) for entry in file.prompts]
    insert_rows(RemediationPrompt, prompts, file.prompts)
    insert_entries(Reminder, file.reminders, rows, dialog=dialog)
    insert_entries(AutonomousRun, file.runs, {}, dialog=dialog)
    insert_entries(QueuedMessage, file.queued, rows, dialog=dialog)
    _carry(file.courses, rows, questions)
    _finish(dialog, file, rows["messages"])


def _prompt(dialog: Dialog, fields: dict[str, Any]) -> RemediationPrompt:
    return RemediationPrompt(dialog=dialog, course=fields["message"].course, **fields)


def _carry(entries: tuple[shape.CourseEntry, ...], rows: Rows, questions: Questions) -> None:
    for entry in entries:
        if entry.carried is not None:
            rows["courses"][entry.number].carried = _carried(entry.carried, rows["messages"], questions)
    update_columns(Course, list(rows["courses"].values()), "carried")


def _carried(entry: shape.CarriedEntry, messages: Numbered, questions: Questions) -> dict[str, Any]:
    """`carried` as `driver.writes.courses` writes it: messages and questions by id."""
    return {
        "reminders": list(entry.reminders),
        "taskdoc": entry.taskdoc,
        "request": messages[entry.request].pk if entry.request is not None else None,
        "questions": [questions[place.message, place.position].pk for place in entry.questions],
    }


def _finish(dialog: Dialog, file: shape.DialogFile, messages: Numbered) -> None:
    """Take the dialog out of the trash. A file without a current leaf gets the newest message as such: a dialog without
    one counts as half imported."""
    leaf = max(messages, default=None) if file.current_leaf is None else file.current_leaf
    dialog.trashed_at = None
    dialog.created_at = file.created_at
    dialog.current_leaf = messages[leaf] if leaf is not None else None
    # With `update_fields` Django raises an error if the row is gone.
    dialog.save(update_fields=["trashed_at", "created_at", "current_leaf"])


MAX_BYTES = 100 * 1024 * 1024
FILE = TypeAdapter(DialogFile)
# Values of the fields that an older format lacks.
OF_SEVEN: dict[str, Any] = {"own_tools": OwnTools.AUTOMATIC.value}
OF_SIX: dict[str, Any] = {**OF_SEVEN, "standing_rules": []}
OF_FIVE: dict[str, Any] = {**OF_SIX, "compaction": Compaction.AUTOMATIC.value}
FORMAT_CHARS = 100
OLDER = {"dominds.dialog/7": OF_SEVEN, "dominds.dialog/6": OF_SIX, "dominds.dialog/5": OF_FIVE}


def parse_json(raw: bytes) -> object:
    """JSON from an upload or a file. Raises DialogError with line and column."""
    if len(raw) > MAX_BYTES:
        raise DialogError(_("The file is larger than %(most)s MB.") % {"most": MAX_BYTES // 2**20})
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise DialogError(_("The file is not JSON: line %(line)s, column %(column)s.") % place) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, a number of thousands of digits, endless nesting
        raise DialogError(_("The file is not JSON that can be read.")) from error


def read_file(data: object) -> DialogFile:
    """The checked file. Raises DialogError that names the place."""
    try:
        file = FILE.validate_python(_as_newest(data))
    except ValidationError as error:
        location, inside, problem = problems_of(error)[0]
        refuse(path_of(location) + inside, problem)
    file = as_ordinary(file)
    check_whole(file)
    return file


def _as_newest(data: object) -> object:
    if not isinstance(data, dict) or not str(data.get("format", "")).startswith("dominds.dialog/"):
        raise DialogError(_("This is no dialog file: choose one that “Export as JSON” wrote."))
    if (named := data["format"]) == FORMAT:
        return data
    if named not in OLDER:
        formats = {"format": named[:FORMAT_CHARS], "first": min(OLDER), "last": FORMAT}
        raise DialogError(_("The file has the format %(format)s. This version reads %(first)s to %(last)s.") % formats)
    for name in OLDER[named].keys() & data.keys():
        refuse(name, _("is a field that this version does not know."))
    return data | OLDER[named] | {"format": FORMAT}
