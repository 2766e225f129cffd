"""Many rows at once, with the moments of their entries: Django would set them to now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

BATCH = 500
Row = TypeVar("Row", bound=Model)
Entry = TypeVar("Entry")


def parts(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
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
