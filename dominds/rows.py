"""One row stored or changed by a statement that is made once for its model and fields.

As `Model.save` does it, without looking first whether it is a row, without signals, and without compiling the same
statement again, which takes three times as long as all else about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from django.db import connection
from django.db.models import Field, Model

# More are inserted by one statement, which has to be put into words each time.
FEW = 3


def add(row: Model) -> None:
    """Insert it. It has its id then."""
    kind = type(row)
    sql, fields = _insert(kind, connection.vendor, row.pk is not None)
    with connection.cursor() as cursor:
        cursor.execute(sql, _values(row, fields, is_new=True))
        if row.pk is None:
            row.pk = cursor.fetchone()[0]
    row._state.adding, row._state.db = False, connection.alias


def add_all(rows: Iterable[Model]) -> None:
    """Rows of one model."""
    found = list(rows)
    if len(found) > FEW:
        type(found[0])._default_manager.bulk_create(found)
        return
    for row in found:
        add(row)


def change(row: Model, *names: str) -> None:
    """Update these fields of it."""
    sql, fields = _update(type(row), connection.vendor, names)
    with connection.cursor() as cursor:
        cursor.execute(sql, _values(row, fields, is_new=False))


Statement: TypeAlias = "tuple[str, Sequence[Field[Any, Any]]]"


@lru_cache(maxsize=256)
def _insert(kind: type[Model], vendor: str, has_key: bool) -> Statement:
    options, quoted = kind._meta, connection.ops.quote_name
    fields = [one for one in options.concrete_fields if has_key or one is not options.pk]
    columns = ", ".join(quoted(str(one.column)) for one in fields)
    slots = ", ".join(["%s"] * len(fields))
    sql = f"INSERT INTO {quoted(options.db_table)} ({columns}) VALUES ({slots})"  # noqa: S608  names of ours
    return sql if has_key else f"{sql} RETURNING {quoted(str(options.pk.column))}", fields


@lru_cache(maxsize=256)
def _update(kind: type[Model], vendor: str, names: tuple[str, ...]) -> Statement:
    options, quoted = kind._meta, connection.ops.quote_name
    fields = [cast("Field[Any, Any]", options.get_field(name)) for name in names]
    changes = ", ".join(f"{quoted(str(one.column))} = %s" for one in fields)
    sql = f"UPDATE {quoted(options.db_table)} SET {changes} WHERE {quoted(str(options.pk.column))} = %s"  # noqa: S608  the same
    return sql, [*fields, options.pk]


def _values(row: Model, fields: Sequence[Field[Any, Any]], *, is_new: bool) -> list[Any]:
    return [one.get_db_prep_save(one.pre_save(row, is_new), connection) for one in fields]
