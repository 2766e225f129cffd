"""What stands beside the messages, written from a checked dialog file: generations with their readings and what was
sent; marks, compaction runs and the moves of views. Whoever did it is not known.

`add` and `put` write many rows at once, with the moments of their entries: Django would set them to now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Model

from dialogs.models import LLM, Course, Generation, Message, MessageMark, ViewChange
from dialogs.transcript.model_view import Entry, dump
from dialogs.transfer.laws import judged_by, usage_of
from dialogs.transfer.shape import CourseEntry, DialogFile, GenerationEntry, ReadingEntry, SentEntry, UsageEntry
from dialogs.transfer.shape_views import CompactionEntry, LossEntry, MarkEntry, ReceiptEntry, SeenEntry, ViewChangeEntry
from dialogs.turns.writes.generations import keep_blobs
from health.models import CompactionRun, HealthReading
from health.monitor.levels import read

Messages = dict[int, Message]
Courses = dict[int, Course]
# Compaction runs by their number in the file.
Runs = dict[int, CompactionRun]
BATCH = 500
Row = TypeVar("Row", bound=Model)
Told = TypeVar("Told")


def llm_named(slug: str) -> LLM | None:
    provider, _slash, model_id = slug.partition("/")
    return LLM.objects.filter(provider__name=provider, model_id=model_id).first()


@transaction.atomic
def add_generations(
    file: DialogFile,
    entries: Sequence[GenerationEntry],
    courses: dict[int, Course],
    messages: dict[int, Message],
    runs: Runs,
) -> None:
    """These entries of the file. Texts are kept in the transaction that names them, so that none is dropped before."""
    llms = {name: llm_named(name) for name in {entry.llm for entry in entries}}
    hashes = _keep_texts(file, entries)
    rows = [
        _generation(
            entry, courses[entry.course], messages, llms[entry.llm], _manifest(entry.sent, messages, hashes, runs)
        )
        for entry in entries
    ]
    add(Generation, rows, entries, "started_at")
    judged = [(row, entry, entry.reading) for row, entry in zip(rows, entries, strict=True) if entry.reading]
    verdicts = [_reading(row, entry, reading) for row, entry, reading in judged]
    add(HealthReading, verdicts, [reading for _row, _entry, reading in judged], "read_at")


def _keep_texts(file: DialogFile, entries: Sequence[GenerationEntry]) -> dict[int, str]:
    """Hashes by index. A text that nothing refers to is not kept: nobody would ever erase it."""
    used = {index for entry in entries for index in entry.sent.texts.values()}
    kept = keep_blobs(file.texts[index] for index in used)
    return {index: kept[file.texts[index]] for index in used}


def _manifest(sent: SentEntry, messages: dict[int, Message], hashes: dict[int, str], runs: Runs) -> dict[str, Any]:
    """The list of what was sent, as `turns.writes.generations` writes it."""
    return {
        "messages": [messages[seq].pk for seq in sent.messages],
        "options": sent.options,
        **({"view": runs[sent.view].pk} if sent.view is not None else {}),
        **({"estimated": sent.estimated} if sent.estimated is not None else {}),
        **{key: hashes[index] for key, index in sent.texts.items()},
    }


def _generation(
    entry: GenerationEntry, course: Course, messages: dict[int, Message], llm: LLM | None, manifest: dict[str, Any]
) -> Generation:
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
        status=entry.status,
        fencing_token=0,
        manifest=manifest,
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


def _reading(row: Generation, entry: GenerationEntry, reading: ReadingEntry) -> HealthReading:
    verdict = read(usage_of(entry), judged_by(reading))
    return HealthReading(
        generation=row,
        prompt_tokens=verdict.prompt_tokens,
        hard_util=verdict.hard_util,
        optimal_util=verdict.optimal_util,
        **asdict(reading),
    )


def add_marks(entries: tuple[MarkEntry, ...], messages: Messages) -> None:
    rows = [MessageMark(**asdict(entry) | {"message": messages[entry.message]}) for entry in entries]
    add(MessageMark, rows, entries, "marked_at")


def add_compactions(entries: tuple[CompactionEntry, ...], courses: Courses, messages: Messages) -> Runs:
    rows = add(CompactionRun, [_run(entry, courses, messages) for entry in entries], entries, "queued_at")
    runs = {entry.number: row for entry, row in zip(entries, rows, strict=True)}
    for entry in entries:
        runs[entry.number].parent_run = runs[entry.parent] if entry.parent is not None else None
    CompactionRun.objects.bulk_update(rows, ["parent_run"], batch_size=BATCH)
    return runs


def _run(entry: CompactionEntry, courses: Courses, messages: Messages) -> CompactionRun:
    leaf, fields = messages[entry.leaf], asdict(entry)
    for name in ("number", "parent"):
        fields.pop(name)
    changed: dict[str, Any] = {
        "course": courses[entry.course],
        "leaf": leaf,
        "through_seq": leaf.seq,
        "view": dump(_seen(one, messages) for one in entry.view),
        "removed": _ids(entry.removed, messages),
        "coverage": [_about_message(one, messages) for one in entry.coverage],
        "losses": [_about_message(one, messages) for one in entry.losses],
    }
    return CompactionRun(dialog=leaf.dialog, **fields | changed)


def _seen(entry: SeenEntry, messages: Messages) -> Entry:
    return Entry(
        message_id=messages[entry.message].pk if entry.message is not None else None,
        content=entry.content,
        kind=entry.kind,
        covers=tuple(_ids(entry.covers, messages)),
    )


def _ids(seqs: Iterable[int], messages: Messages) -> list[int]:
    return [messages[seq].pk for seq in seqs]


def _about_message(entry: ReceiptEntry | LossEntry, messages: Messages) -> dict[str, Any]:
    """The engine names units by text; nothing is known of what an earlier run wrote."""
    return asdict(entry) | {"message": str(messages[entry.message].pk) if entry.message is not None else ""}


def set_heads(entries: tuple[CourseEntry, ...], courses: Courses, runs: Runs) -> None:
    heads = {entry.number: runs[entry.head] for entry in entries if entry.head is not None}
    for number, run in heads.items():
        courses[number].head_run = run
    Course.objects.bulk_update([courses[number] for number in heads], ["head_run"], batch_size=BATCH)


def add_view_changes(entries: tuple[ViewChangeEntry, ...], courses: Courses, runs: Runs) -> None:
    rows = [
        ViewChange(
            course=courses[entry.course],
            before=runs[entry.before] if entry.before is not None else None,
            after=runs[entry.after] if entry.after is not None else None,
            why=entry.why,
        )
        for entry in entries
    ]
    add(ViewChange, rows, entries, "changed_at")


def parts(entries: Sequence[Told]) -> Iterator[Sequence[Told]]:
    """The entries in groups, each as large as one transaction writes."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def add(table: type[Row], rows: Iterable[Row], entries: Sequence[object], *moments: str) -> list[Row]:
    """Insert one row for each entry; the `moments` have the same name in both."""
    listed = list(rows)
    table._default_manager.bulk_create(listed, batch_size=BATCH)
    for row, entry in zip(listed, entries, strict=True) if moments else ():
        for name in moments:
            setattr(row, name, getattr(entry, name))
    put(table, listed, *moments)
    return listed


def put(table: type[Row], rows: Sequence[Row], *names: str) -> None:
    """Write these columns of rows that are there. One statement, prepared once: Django's `bulk_update` builds one of
    hundreds of conditions for every batch, and nobody else can write meanwhile.
    """
    fields: list[Any] = [table._meta.get_field(name) for name in names]
    if not fields or not rows:
        return
    quoted = connection.ops.quote_name
    columns = ", ".join(f"{quoted(field.column)} = %s" for field in fields)
    # Names of our own tables only.
    key = quoted(table._meta.pk.column)  # type: ignore[arg-type]  # every table has one
    statement = f"UPDATE {quoted(table._meta.db_table)} SET {columns} WHERE {key} = %s"  # noqa: S608
    values = ((*(_stored(row, field) for field in fields), row.pk) for row in rows)
    with connection.cursor() as cursor:
        cursor.executemany(statement, list(values))


def _stored(row: Model, field: Any) -> Any:
    return field.get_db_prep_save(getattr(row, field.attname), connection)
