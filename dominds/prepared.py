"""Queries that Django compiles once in a process and that are then executed with other values.

For a query that finds one row, Django takes ten to thirty times as long as the database: it builds and compiles the
query, and looks up each column's converters, every time. The results are the same.

    @prepared(UUIDField())
    def _dialogs(dialog_id: Any) -> QuerySet[Dialog]:
        return Dialog.objects.select_related("llm").filter(pk=dialog_id)

    _dialogs(dialog_id)  # a list

Inside `cached_reads()` a query is not executed again with the same values.

`Many` is a list of values for `__in`: the statement is the same for any number of them. All these statements share one
cursor as long as the connection is open: opening one for each of a request's twenty statements takes Python longer than
SQLite takes to execute them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from functools import lru_cache
from threading import local
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, IntegerField, JSONField, Model, QuerySet, Value
from django.db.models.base import ModelState
from django.db.models.expressions import Col
from django.db.models.query import ModelIterable
from django.db.models.signals import post_init
from django.db.models.sql.subqueries import UpdateQuery

KEPT = "dominds_cursor"
ANY = "ANY("
Row = TypeVar("Row")
Cells = Sequence[Any]
# Per thread: its connection, and the results of `cached_reads`.
_thread = local()


def database() -> BaseDatabaseWrapper:
    """This thread's connection; cheaper than `django.db.connection`, which looks it up at each attribute."""
    found: BaseDatabaseWrapper | None = getattr(_thread, "database", None)
    return connections[DEFAULT_DB_ALIAS] if found is None else found


def cache_database() -> BaseDatabaseWrapper:
    """Cache this thread's connection for `database()`. Only for threads without an event loop."""
    _thread.database = connections[DEFAULT_DB_ALIAS]
    return _thread.database


@contextmanager
def cached_reads() -> Iterator[None]:
    """For code on one thread that only reads: a prepared query with the same values returns the same rows."""
    _thread.found = {}
    try:
        yield
    finally:
        del _thread.found


def cursor_of(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """The connection's kept cursor. After executing a statement, fetch all rows at once: others use the cursor too."""
    connection.close_if_health_check_failed()
    opened, cursor = connection.__dict__.get(KEPT, (None, None))
    if opened is not None and opened is connection.connection and not connection.force_debug_cursor:
        return cursor
    connection.ensure_connection()
    if connection.queries_logged:
        return connection.cursor()
    with connection.wrap_database_errors:
        cursor = LeanCursor(connection.create_cursor(), connection)
    connection.__dict__[KEPT] = connection.connection, cursor
    return cursor


class LeanCursor(CursorWrapper):
    """Django's cursor without its checks at each statement, where there are no wrappers."""

    def _execute_with_wrappers(self, sql: str, params: Any, many: bool, executor: Callable[..., Any]) -> Any:
        if self.db.execute_wrappers or params is None or many:
            return super()._execute_with_wrappers(sql, params, many, executor)  # type: ignore[misc]  # the stubs lack it
        self.db.validate_no_broken_transaction()
        with self.db.wrap_database_errors:
            return self.cursor.execute(sql, params)


def rows_of(connection: BaseDatabaseWrapper, sql: str, params: Any) -> list[Any]:
    cursor = cursor_of(connection)
    cursor.execute(sql, params)
    with connection.wrap_database_errors:
        return cursor.cursor.fetchall()


class Slot(Value):
    """A placeholder for a value in a query; its field converts the value for the database."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class SlotOfMany(Slot):
    """A slot that takes many values as one parameter. On PostgreSQL `= ANY(array)`, which uses an index whatever the
    query joins; with a subquery it may scan the table. `SELECT %s` makes the plan independent of the array: PostgreSQL
    would plan again for each, which takes longer than finding a few rows."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        if connection.vendor == "postgresql":
            kind = f"{self.output_field.db_type(connection)}[]"
            return f"{ANY}(SELECT %s::{kind})::{kind})", [self]
        return "(SELECT value FROM json_each(%s))", [self]


@dataclass(frozen=True)
class Many:
    """Any number of values of this field."""

    field: Field[Any, Any]


Param: TypeAlias = "Field[Any, Any] | Many"


def prepared(*fields: Param, is_shared: bool = False) -> Callable[[Callable[..., QuerySet[Any, Row]]], Prepared[Row]]:
    """The decorated function is called once for each kind of database, with a slot for each field. It returns a query
    for a model's rows, or for columns with `values_list`. It must not depend on the time of the call.

    `is_shared`: `FOR KEY SHARE` in place of `FOR UPDATE`, which Django lacks: many may hold it, only a delete waits.
    """
    return lambda build: Prepared(build, fields, is_shared=is_shared)


def prepared_update(*fields: Param) -> Callable[[Callable[..., Change]], PreparedUpdate]:
    """A prepared UPDATE. The decorated function returns the query and the new values."""
    return lambda build: PreparedUpdate(build, fields)


class Prepared(Generic[Row]):
    def __init__(
        self, build: Callable[..., QuerySet[Any, Row]], fields: Sequence[Param], *, is_shared: bool = False
    ) -> None:
        self._build, self._fields, self._is_shared = build, fields, is_shared
        self._takes_many = any(isinstance(one, Many) for one in fields)
        self._statements: dict[str, Statement] = {}

    def __call__(self, *values: Any) -> list[Row]:
        found: dict[Any, list[Row]] | None = getattr(_thread, "found", None)
        if found is None or self._takes_many:
            return self._found(values)
        key = self, values
        if key not in found:
            found[key] = self._found(values)
        return [*found[key]]

    def _found(self, values: Sequence[Any]) -> list[Row]:
        connection = database()
        statement = self._statements.get(connection.vendor) or self._prepare(connection)
        found = rows_of(connection, statement.sql, _params_with(statement.params, values, connection))
        return statement.made(found, connection)

    def first(self, *values: Any) -> Row | None:
        return next(iter(self(*values)), None)

    def _prepare(self, connection: BaseDatabaseWrapper) -> Statement:
        slots = (_slot(at, wanted) for at, wanted in enumerate(self._fields))
        made = Statement.of(self._build(*slots), connection)
        if self._is_shared:
            made = replace(made, sql=made.sql.replace(" FOR UPDATE", " FOR KEY SHARE"))
        self._statements[connection.vendor] = made
        return made


Change: TypeAlias = "tuple[QuerySet[Any, Any], dict[str, Any]]"


class PreparedUpdate:
    def __init__(self, build: Callable[..., Change], fields: Sequence[Param]) -> None:
        self._build, self._fields = build, fields
        self._statements: dict[str, tuple[str, Sequence[Any]]] = {}

    def __call__(self, *values: Any) -> int:
        """Execute the update; the number of rows."""
        connection = database()
        sql, params = self._statements.get(connection.vendor) or self._prepare(connection)
        cursor = cursor_of(connection)
        cursor.execute(sql, _params_with(params, values, connection))
        return cursor.rowcount

    def _prepare(self, connection: BaseDatabaseWrapper) -> tuple[str, Sequence[Any]]:
        query, changes = self._build(*(_slot(at, wanted) for at, wanted in enumerate(self._fields)))
        update: Any = query.query.chain(UpdateQuery)
        update.add_update_values(changes)
        made = self._statements[connection.vendor] = update.get_compiler(connection.alias).as_sql()
        return made


def _slot(at: int, wanted: Param) -> Slot:
    return SlotOfMany(at, output_field=wanted.field) if isinstance(wanted, Many) else Slot(at, output_field=wanted)


@dataclass(frozen=True)
class Statement:
    sql: str
    params: Sequence[Any]
    # (position in a row, converters from database to Python, column).
    converters: Sequence[tuple[int, Sequence[Callable[..., Any]], Any]]
    # The model of the rows; None for `values_list`.
    model: Part | None
    # (name, position in a row) of annotations.
    annotations: Sequence[tuple[str, int]]

    @classmethod
    def of(cls, query: QuerySet[Any, Any], connection: BaseDatabaseWrapper) -> Statement:
        compiler = query.query.get_compiler(using=connection.alias)
        sql, params = compiler.as_sql()
        sql = sql.replace(f" IN {ANY}", f" = {ANY}")
        columns = [column for column, *_ in compiler.select]
        converters = [
            (at, [_fast_converter(one, column, connection) for one in how], column)
            for at, (how, column) in compiler.get_converters(columns).items()
        ]
        wants_rows = issubclass(query._iterable_class, ModelIterable)
        part = Part.of(compiler.klass_info, columns) if wants_rows else None
        return cls(sql, params, converters, part, tuple(compiler.annotation_col_map.items()))

    def made(self, rows: Sequence[Cells], connection: BaseDatabaseWrapper) -> list[Any]:
        whole = (self._converted(row, connection) for row in rows) if self.converters else rows
        return [self._row(self.model, cells) if self.model else tuple(cells) for cells in whole]

    def _row(self, model: Part, cells: Cells) -> Model:
        row = model.row(cells)
        for name, at in self.annotations:
            setattr(row, name, cells[at])
        return row

    def _converted(self, row: Cells, connection: BaseDatabaseWrapper) -> Cells:
        cells = list(row)
        for at, converters, column in self.converters:
            for convert in converters:
                cells[at] = convert(cells[at], column, connection)
        return cells


Convert: TypeAlias = Callable[[Any, Any, BaseDatabaseWrapper], Any]
_decode = json.JSONDecoder().raw_decode


def _fast_converter(convert: Convert, column: Any, connection: BaseDatabaseWrapper) -> Convert:
    """A faster equivalent of Django's converter, where there is one."""
    field = column.target if isinstance(column, Col) else None
    if isinstance(field, JSONField) and field.decoder is None and convert == field.from_db_value:
        return lambda value, *_beside: None if value is None else _decode(value)[0]
    name = getattr(convert, "__name__", "")
    if name == "convert_datetimefield_value" and connection.timezone is UTC:
        return lambda value, *_beside: value and value.replace(tzinfo=UTC)
    if name == "convert_uuidfield_value":
        return lambda value, *_beside: None if value is None else _uuid(value)
    return convert


# Cached, since a query's rows mostly have the same few ids, and making a UUID takes longer than reading the row.
_uuid = lru_cache(maxsize=1024)(UUID)


def _params_with(params: Sequence[Any], values: Sequence[Any], connection: BaseDatabaseWrapper) -> list[Any]:
    return [_db_value(one, values, connection) if isinstance(one, Slot) else one for one in params]


def _db_value(slot: Slot, values: Sequence[Any], connection: BaseDatabaseWrapper) -> Any:
    value, write = values[slot.value], slot.output_field.get_db_prep_value
    if not isinstance(slot, SlotOfMany):
        return write(value, connection)
    # Numbers need no conversion.
    is_number = isinstance(slot.output_field, IntegerField)
    written = list(value) if is_number else [write(one, connection) for one in value]
    return written if connection.vendor == "postgresql" else json.dumps(written)


@dataclass(frozen=True)
class Part:
    """The cells of a row that belong to one model, and the parts of its `select_related` models."""

    kind: type[Model]
    begins: int
    names: Sequence[str]
    # The position of its primary key; where that is null there is no related row.
    key: int
    related: Sequence[tuple[Part, Callable[..., None], Callable[..., None]]]

    @classmethod
    def of(cls, info: dict[str, Any], columns: Sequence[Any]) -> Part:
        places, kind = info["select_fields"], info["model"]
        names = [columns[at].target.attname for at in places]
        related = [
            (cls.of(one, columns), one["local_setter"], one["remote_setter"])
            for one in info.get("related_klass_infos", ())
        ]
        return cls(kind, places[0], names, places[names.index(kind._meta.pk.attname)], related)

    def row(self, cells: Cells) -> Model:
        """The same as `Model.from_db`, faster."""
        row = self.kind.__new__(self.kind)
        row.__dict__ |= zip(self.names, cells[self.begins : self.begins + len(self.names)], strict=True)
        row._state = ModelState()
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
        if post_init.receivers:
            post_init.send(sender=self.kind, instance=row)
        for part, set_here, set_there in self.related:
            other = part.row(cells) if cells[part.key] is not None else None
            set_here(row, other)
            if other is not None:
                set_there(other, row)
        return row
