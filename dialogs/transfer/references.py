"""References in a dialog file: numbers whose type says in which list of the file the entry is. And inserting many rows
from entries, with references and times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from django.db import connection
from django.db.models import DateTimeField, Model

from dialogs.common.file_fields import Counted, Record, Whole


@dataclass(frozen=True)
class Reference:
    """Annotates a number: it refers to an entry in this list of the file."""

    entries: str


MessageSeq = Annotated[Counted, Reference("messages")]
CourseNumber = Annotated[Counted, Reference("courses")]
RunNumber = Annotated[Counted, Reference("compactions")]
ReminderNumber = Annotated[Counted, Reference("reminders")]
TextIndex = Annotated[Whole, Reference("texts")]

# Cached by kind of record.
REFERENCES: dict[type[Record], dict[str, str]] = {}


def references_in(kind: type[Record]) -> dict[str, str]:
    """The fields that refer to other entries, and the list that each refers to."""
    if kind not in REFERENCES:
        found = {name: _reference(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
        REFERENCES[kind] = {name: reference.entries for name, reference in found.items() if reference}
    return REFERENCES[kind]


def _reference(hint: Any) -> Reference | None:
    if isinstance(hint, Reference):
        return hint
    return next(filter(None, map(_reference, get_args(hint))), None)


BATCH = 500
Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
# For each list: the inserted rows, by their numbers in the file.
Numbered = dict[int, Any]
Rows = dict[str, Numbered]


def columns(entry: Record, rows: Rows, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The entry's fields, with rows in place of references."""
    fields = {name: value for name, value in vars(entry).items() if name not in without}
    for name, entries in references_in(type(entry)).items():
        if isinstance(number := fields.get(name), int) and entries in rows:
            fields[name] = rows[entries][number]
    return fields


def batches(entries: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The entries in groups for one transaction each."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def insert_entries(
    table: type[Row], entries: Sequence[Record], rows: Rows, *, without: Collection[str] = (), **given: Any
) -> list[Row]:
    """Insert one row for each entry, with its `columns` and the given values."""
    return insert_rows(table, [table(**columns(entry, rows, without=without) | given) for entry in entries], entries)


def insert_rows(table: type[Row], rows: Iterable[Row], entries: Sequence[Record]) -> list[Row]:
    """Insert the rows of these entries. Times that Django sets to now are overwritten by the entries'."""
    listed = list(rows)
    table._default_manager.bulk_create(listed, batch_size=BATCH)
    moments = [field.name for field in table._meta.fields if _is_set_to_now(field)]
    for row, entry in zip(listed, entries, strict=True):
        for name in moments:
            setattr(row, name, getattr(entry, name))
    update_columns(table, listed, *moments)
    return listed


def _is_set_to_now(field: Any) -> bool:
    return isinstance(field, DateTimeField) and (field.auto_now or field.auto_now_add)


def update_columns(table: type[Row], rows: Sequence[Row], *names: str) -> None:
    """Update these columns of existing rows, with `executemany` of one statement: Django's `bulk_update` is slower, and
    nobody else can write meanwhile."""
    fields: list[Any] = [table._meta.get_field(name) for name in names]
    if not fields or not rows:
        return
    quoted = connection.ops.quote_name
    columns = ", ".join(f"{quoted(field.column)} = %s" for field in fields)
    # Only names of our own tables and columns.
    key = quoted(table._meta.pk.column)  # type: ignore[arg-type]  # every table has one
    statement = f"UPDATE {quoted(table._meta.db_table)} SET {columns} WHERE {key} = %s"  # noqa: S608
    values = ((*(_stored(row, field) for field in fields), row.pk) for row in rows)
    with connection.cursor() as cursor:
        cursor.executemany(statement, list(values))


def _stored(row: Model, field: Any) -> Any:
    return field.get_db_prep_save(getattr(row, field.attname), connection)
