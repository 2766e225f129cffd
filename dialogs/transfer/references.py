"""Numbers of a dialog file that name another of its entries: their types say in which list that stands. And many rows
at once, from entries, with the rows that these name and with their moments.
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
    """Of a number in a file: it names an entry in this list of the file's."""

    entries: str


MessageSeq = Annotated[Counted, Reference("messages")]
CourseNumber = Annotated[Counted, Reference("courses")]
RunNumber = Annotated[Counted, Reference("compactions")]
ReminderNumber = Annotated[Counted, Reference("reminders")]
TextIndex = Annotated[Whole, Reference("texts")]

# By kind of record: they are asked for with each one.
REFERENCES: dict[type[Record], dict[str, str]] = {}


def references_in(kind: type[Record]) -> dict[str, str]:
    """The fields that name other entries, each with the list that these stand in."""
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
# The rows that entries of these lists became, by their numbers in the file.
Numbered = dict[int, Any]
Rows = dict[str, Numbered]


def columns(entry: Record, rows: Rows, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The entry's fields but for some, with the rows of other entries in place of their numbers."""
    fields = {name: value for name, value in vars(entry).items() if name not in without}
    for name, entries in references_in(type(entry)).items():
        if isinstance(number := fields.get(name), int) and entries in rows:
            fields[name] = rows[entries][number]
    return fields


def parts(entries: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The entries in groups, each as large as one transaction writes."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def add_each(
    table: type[Row], entries: Sequence[Record], rows: Rows, *, without: Collection[str] = (), **given: Any
) -> list[Row]:
    """Insert one row for each entry, with its columns and what is given."""
    return add(table, [table(**columns(entry, rows, without=without) | given) for entry in entries], entries)


def add(table: type[Row], rows: Iterable[Row], entries: Sequence[Record]) -> list[Row]:
    """Insert one row for each entry. The moments that Django sets to now are the entries' own afterwards."""
    listed = list(rows)
    table._default_manager.bulk_create(listed, batch_size=BATCH)
    moments = [field.name for field in table._meta.fields if _is_set_to_now(field)]
    for row, entry in zip(listed, entries, strict=True):
        for name in moments:
            setattr(row, name, getattr(entry, name))
    put(table, listed, *moments)
    return listed


def _is_set_to_now(field: Any) -> bool:
    return isinstance(field, DateTimeField) and (field.auto_now or field.auto_now_add)


def put(table: type[Row], rows: Sequence[Row], *names: str) -> None:
    """Write these columns of rows that are there. One statement, prepared once: Django's `bulk_update` builds one of
    hundreds of conditions for every batch, and nobody else can write meanwhile.
    """
    fields: list[Any] = [table._meta.get_field(name) for name in names]
    if not fields or not rows:
        return
    quoted = connection.ops.quote_name
    columns = ", ".join(f"{quoted(field.column)} = %s" for field in fields)
    # Reference of our own tables only.
    key = quoted(table._meta.pk.column)  # type: ignore[arg-type]  # every table has one
    statement = f"UPDATE {quoted(table._meta.db_table)} SET {columns} WHERE {key} = %s"  # noqa: S608
    values = ((*(_stored(row, field) for field in fields), row.pk) for row in rows)
    with connection.cursor() as cursor:
        cursor.executemany(statement, list(values))


def _stored(row: Model, field: Any) -> Any:
    return field.get_db_prep_save(getattr(row, field.attname), connection)
