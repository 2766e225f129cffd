"""Creates, inserts and updates single rows, with statements that are compiled once for each model and its fields.

Like `Model.save`, but without signals, without checking whether the row exists, and without compiling the statement
again, which takes three times as long as the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    ForeignKey,
    IntegerField,
    JSONField,
    Model,
    TextField,
    UUIDField,
)
from django.db.models.base import ModelState

from dominds.prepared import cursor_of, database, rows_of

# Up to so many rows are inserted by a cached statement, more by `bulk_create`.
FEW = 3
Row = TypeVar("Row", bound=Model)


def new(kind: type[Row], **values: Any) -> Row:
    """The same as `kind(**values)`, faster."""
    row, (same, made, references) = kind.__new__(kind), _shape(kind)
    row._state = state = ModelState()
    known: dict[str, Any] = row.__dict__
    known.update(same)
    for name, make in made:
        known[name] = make()
    referred = state.fields_cache = {}
    for name, value in values.items():
        if name in known:
            known[name] = value
        elif name in references:
            # As the field's descriptor sets it, without asking a router.
            reference = references[name]
            known[reference.column] = None if value is None else getattr(value, reference.target)
            referred[name] = value
            if reference.back and value is not None:
                value._state.fields_cache[reference.back] = row
        else:
            raise TypeError(f"{kind.__name__} has no field {name!r}.")
    return row


def copied(row: Row) -> Row:
    """A copy of the row, with the same related rows."""
    found = row.__class__.__new__(row.__class__)
    found.__dict__.update(row.__dict__)
    found._state = state = ModelState()
    state.adding, state.db = row._state.adding, row._state.db
    state.fields_cache = dict(row._state.fields_cache)
    return found


def insert(row: Model) -> None:
    """Insert the row, and set its id."""
    _insert(row)


def insert_or_ignore(row: Model) -> None:
    """Insert the row unless a unique constraint forbids it. Its id is set only if it was inserted."""
    _insert(row, " ON CONFLICT DO NOTHING")


def insert_all(rows: Iterable[Model]) -> None:
    """Insert rows of one model with one statement. Their ids may not be set."""
    found = list(rows)
    if len(found) > FEW:
        type(found[0])._default_manager.bulk_create(found)
    elif len(found) > 1:
        _insert_together(found)
    else:
        for row in found:
            insert(row)


def _insert_together(rows: Sequence[Model]) -> None:
    connection = database()
    sql, columns = _to_insert(type(rows[0]), connection.vendor, rows[0].pk is not None, rows=len(rows))
    cursor_of(connection).execute(sql, [value for row in rows for value in _values(row, columns, connection)])


def update(row: Model, *names: str) -> None:
    """Update these fields of the row."""
    connection = database()
    sql, columns = _to_update(type(row), connection.vendor, names)
    cursor_of(connection).execute(sql, _values(row, columns, connection))


def _insert(row: Model, conflict: str = "") -> None:
    connection, has_key = database(), row.pk is not None
    sql, columns = _to_insert(type(row), connection.vendor, has_key, conflict)
    values = _values(row, columns, connection)
    if has_key:
        cursor_of(connection).execute(sql, values)
    else:
        row.pk = next((pk for (pk,) in rows_of(connection, sql, values)), None)
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


AnyField: TypeAlias = "Field[Any, Any]"
AnyReference: TypeAlias = "ForeignKey[Any, Any]"
Write: TypeAlias = Callable[[Any, BaseDatabaseWrapper], Any]
# (get the value from a row; the type of values that need no conversion, if there is one; convert a value).
Column: TypeAlias = tuple[Callable[[Model], Any], type | None, Write]
Statement: TypeAlias = tuple[str, Sequence[Column]]
PLAIN: dict[type[AnyField], type] = {CharField: str, TextField: str, IntegerField: int, BooleanField: bool}
# Faster conversions, with the same result as Django's; None: let Django convert it.
SQLITE: dict[type[AnyField], tuple[type, Callable[[Any], Any]]] = {
    UUIDField: (UUID, attrgetter("hex")),
    DateTimeField: (datetime, lambda moment: str(moment.replace(tzinfo=None)) if moment.tzinfo is UTC else None),
    JSONField: (dict, lambda found: None if found else "{}"),
}


class Reference(NamedTuple):
    """A foreign key: its column, the column it refers to, and for a one-to-one the name of the reverse accessor."""

    column: str
    target: str
    back: str


class Shape(NamedTuple):
    """Of a new row: constant defaults, callable defaults, and foreign keys by name."""

    same: dict[str, Any]
    made: Sequence[tuple[str, Callable[[], Any]]]
    references: dict[str, Reference]


@lru_cache(maxsize=256)
def _shape(kind: type[Model]) -> Shape:
    fields = {one.attname: one for one in kind._meta.concrete_fields}
    made = [(name, one.default) for name, one in fields.items() if callable(one.default) and one.has_default()]
    same = {name: one.get_default() for name, one in fields.items() if name not in dict(made)}
    references = {one.name: _reference(one) for one in fields.values() if isinstance(one, ForeignKey)}
    return Shape(same, made, references)


def _reference(field: AnyReference) -> Reference:
    back = field.remote_field
    return Reference(field.attname, field.target_field.attname, "" if back.multiple else back.cache_name)


@lru_cache(maxsize=256)
def _to_insert(kind: type[Model], vendor: str, has_key: bool, conflict: str = "", rows: int = 1) -> Statement:
    """The INSERT; for one row without an id it returns the new id."""
    options, quoted = kind._meta, connections[DEFAULT_DB_ALIAS].ops.quote_name
    fields = [one for one in options.concrete_fields if has_key or one is not options.pk]
    names = ", ".join(quoted(str(one.column)) for one in fields)
    slots = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * rows)
    sql = f"INSERT INTO {quoted(options.db_table)} ({names}) VALUES {slots}{conflict}"  # noqa: S608  names of ours
    wanted = "" if has_key or rows > 1 else f" RETURNING {quoted(str(options.pk.column))}"
    return f"{sql}{wanted}", [_column(one, vendor, is_new=True) for one in fields]


@lru_cache(maxsize=256)
def _to_update(kind: type[Model], vendor: str, names: tuple[str, ...]) -> Statement:
    options, quoted = kind._meta, connections[DEFAULT_DB_ALIAS].ops.quote_name
    fields = [cast("AnyField", options.get_field(name)) for name in names]
    changes = ", ".join(f"{quoted(str(one.column))} = %s" for one in fields)
    sql = f"UPDATE {quoted(options.db_table)} SET {changes} WHERE {quoted(str(options.pk.column))} = %s"  # noqa: S608  the same
    return sql, [_column(one, vendor, is_new=False) for one in (*fields, options.pk)]


def _column(field: AnyField, vendor: str, *, is_new: bool) -> Column:
    written: AnyField = field.target_field if isinstance(field, ForeignKey) else field
    plain = next((plain for kind, plain in PLAIN.items() if isinstance(written, kind)), None)
    return _reading(field, is_new=is_new), plain, _writing(field, written, vendor)


def _reading(field: AnyField, *, is_new: bool) -> Callable[[Model], Any]:
    """The row's attribute; or `pre_save` for fields that set their value when the row is stored."""
    if type(field).pre_save is DateTimeField.pre_save:
        moment = cast("DateTimeField[Any, Any]", field)
        is_plain = not (moment.auto_now or (moment.auto_now_add and is_new))
    else:
        is_plain = type(field).pre_save is Field.pre_save
    return attrgetter(field.attname) if is_plain else lambda row: field.pre_save(row, is_new)


def _writing(field: AnyField, written: AnyField, vendor: str) -> Write:
    if isinstance(written, CharField | TextField):
        # Also for a TextChoices member, which is a str.
        return lambda value, connection: value if isinstance(value, str) else field.get_db_prep_save(value, connection)
    known = next((known for kind, known in SQLITE.items() if isinstance(written, kind)), None)
    if known is None or vendor != "sqlite":
        return field.get_db_prep_save
    kind, quick = known

    def write(value: Any, connection: BaseDatabaseWrapper) -> Any:
        found = quick(value) if value.__class__ is kind else None
        return field.get_db_prep_save(value, connection) if found is None else found

    return write


def _values(row: Model, columns: Sequence[Column], connection: BaseDatabaseWrapper) -> list[Any]:
    return [
        value if (value := read(row)) is None or value.__class__ is plain else write(value, connection)
        for read, plain, write in columns
    ]
