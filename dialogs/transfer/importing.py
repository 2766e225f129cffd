"""From a checked dialog file to rows: new ids, one transaction, and a dialog at rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import models, transaction
from django.utils.translation import gettext as _

from dialogs.errors import DialogError
from dialogs.models import LLM, Agent, Course, Dialog, Generation, Message, QueuedMessage
from dialogs.services.generations import keep_blob
from dialogs.transfer.laws import judged_by, usage_of
from dialogs.transfer.reading import read_file
from dialogs.transfer.shape import DialogFile, GenerationEntry, MessageEntry, ReadingEntry, SentEntry, UsageEntry
from health.models import HealthReading
from health.monitor.levels import read

BATCH = 500
INTERRUPTED = Generation.Status.INTERRUPTED
Row = TypeVar("Row", bound=models.Model)


def import_dialog(*, owner: User, data: object, agent: Agent | None = None) -> Dialog:
    """Add the dialog in `data` (parsed JSON) to this person's. Raises DialogError that names the place.

    It speaks to the agent with the file's slug, else to `agent`, else to the first one that is enabled.
    """
    file = read_file(data)
    return _write(owner, file, _agent(file.agent, agent))


def _agent(slug: str, fallback: Agent | None) -> Agent:
    enabled = Agent.objects.filter(enabled=True)
    found = enabled.filter(slug=slug).first() or fallback or enabled.first()
    if found is None:
        raise DialogError(_("There is no agent to go on with. An admin must add one first."))
    return found


def _llm(slug: str) -> LLM | None:
    provider, _slash, model_id = slug.partition("/")
    return LLM.objects.filter(provider__name=provider, model_id=model_id).first()


@transaction.atomic
def _write(owner: User, file: DialogFile, agent: Agent) -> Dialog:
    dialog = Dialog.objects.create(
        owner=owner,
        agent=agent,
        llm=_llm(file.llm) or agent.llm,
        title=file.title,
        titled_by_person=file.titled_by_person,
        active_at=file.active_at,
        last_seq=max((entry.seq for entry in file.messages), default=0),
    )
    courses = {entry.number: Course(dialog=dialog, **asdict(entry)) for entry in file.courses}
    _add(Course, courses.values(), opened_at=[entry.opened_at for entry in file.courses])
    messages = _add_messages(dialog, file.messages, courses)
    _add_generations(dialog, file.generations, courses, messages)
    queued = [QueuedMessage(dialog=dialog, **asdict(entry)) for entry in file.queued]
    _add(QueuedMessage, queued, created_at=[entry.created_at for entry in file.queued])
    _finish(dialog, file, messages)
    return dialog


def _finish(dialog: Dialog, file: DialogFile, messages: dict[int, Message]) -> None:
    dialog.created_at = file.created_at
    dialog.current_leaf = messages[file.current_leaf] if file.current_leaf is not None else None
    dialog.save()


def _add(table: type[Row], rows: Iterable[Row], **moments: list[datetime]) -> None:
    """Insert these rows, with the moments that Django would otherwise set to now."""
    listed = list(rows)
    table._default_manager.bulk_create(listed, batch_size=BATCH)
    for name, values in moments.items():
        for row, value in zip(listed, values, strict=True):
            setattr(row, name, value)
    table._default_manager.bulk_update(listed, list(moments), batch_size=BATCH)


def _add_messages(dialog: Dialog, entries: tuple[MessageEntry, ...], courses: dict[int, Course]) -> dict[int, Message]:
    """By `seq`. Parents are set afterwards, because a row cannot point at one that has no id yet."""
    rows = {entry.seq: _message(dialog, entry, courses) for entry in entries}
    _add(Message, rows.values(), created_at=[entry.created_at for entry in entries])
    children = [(rows[entry.seq], rows[entry.parent]) for entry in entries if entry.parent is not None]
    for child, parent in children:
        child.parent = parent
    Message.objects.bulk_update([child for child, _parent in children], ["parent"], batch_size=BATCH)
    return rows


def _message(dialog: Dialog, entry: MessageEntry, courses: dict[int, Course]) -> Message:
    fields = asdict(entry) | {"course": courses[entry.course]}
    fields.pop("parent")
    return Message(dialog=dialog, **fields)


def _add_generations(
    dialog: Dialog, entries: tuple[GenerationEntry, ...], courses: dict[int, Course], messages: dict[int, Message]
) -> None:
    llms = {name: _llm(name) for name in {entry.llm for entry in entries}}
    rows = [_generation(entry, courses[entry.course], messages, llms[entry.llm]) for entry in entries]
    _add(Generation, rows, started_at=[entry.started_at for entry in entries])
    readings = [
        (row, entry, entry.reading) for row, entry in zip(rows, entries, strict=True) if entry.reading is not None
    ]
    verdicts = [_reading(row, entry, reading) for row, entry, reading in readings]
    _add(HealthReading, verdicts, read_at=[reading.read_at for _row, _entry, reading in readings])


def _generation(entry: GenerationEntry, course: Course, messages: dict[int, Message], llm: LLM | None) -> Generation:
    usage = asdict(entry.usage) if isinstance(entry.usage, UsageEntry) else {}
    return Generation(
        dialog=course.dialog,
        course=course,
        number=entry.number,
        turn=entry.turn,
        attempt=entry.attempt,
        llm=llm,
        llm_name=entry.llm,
        prompt_leaf=messages[entry.prompt_leaf],
        message=messages[entry.message] if entry.message is not None else None,
        # Nobody is answering here, whatever was going on when the file was made.
        status=INTERRUPTED if entry.status == Generation.Status.RUNNING else entry.status,
        fencing_token=0,
        manifest=_manifest(entry.sent, messages),
        partial_text=entry.partial_text,
        partial_reasoning=entry.partial_reasoning,
        usage_raw=entry.usage_raw,
        finish_reason=entry.finish_reason,
        error_code=entry.error_code,
        error_message=entry.error_message,
        first_token_at=entry.first_token_at,
        finished_at=entry.finished_at,
        **usage,
    )


def _manifest(sent: SentEntry, messages: dict[int, Message]) -> dict[str, Any]:
    manifest: dict[str, Any] = {"messages": [messages[seq].pk for seq in sent.messages], "options": sent.options}
    if sent.instructions is not None:
        manifest["instructions"] = keep_blob(sent.instructions)
    return manifest


def _reading(row: Generation, entry: GenerationEntry, reading: ReadingEntry) -> HealthReading:
    verdict = read(usage_of(entry), judged_by(reading))
    return HealthReading(
        generation=row,
        prompt_tokens=verdict.prompt_tokens,
        hard_util=verdict.hard_util,
        optimal_util=verdict.optimal_util,
        **asdict(reading),
    )
