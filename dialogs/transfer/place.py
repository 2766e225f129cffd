"""Readers for values from outside: each takes a Place and gives a checked value, or refuses by its path.

A type says how it is read: `reader(Annotated[int, whole(1, 9)])` is `whole(1, 9)`, and that of a dataclass reads an
object with exactly its fields.

PURE but for the translated sentence of a refusal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.text import storable

# What the smallest integer column of every database takes.
MAX_WHOLE = 2_147_483_647
# For numbers that are counted on from: far more than any dialog needs, and far from the column's end.
MAX_COUNTED = 1_000_000_000
MAX_DEPTH = 50
MAX_ENTRIES = 50_000
Value = TypeVar("Value")


@dataclass(frozen=True)
class Place:
    """A value in a file and the way to it, such as `messages[3].parent`."""

    value: Any
    path: str = ""

    def refuse(self, problem: str) -> NoReturn:
        where = {"where": self.path or _("the file"), "problem": problem}
        raise DialogError(storable(_("The dialog file cannot be read: %(where)s %(problem)s") % where))

    def key(self, name: str) -> Place:
        return Place(self.value[name], f"{self.path}.{name}".lstrip("."))


Reader = Callable[[Place], Value]


def record(place: Place, table: Mapping[str, Reader[Any]]) -> dict[str, Any]:
    """An object with exactly these fields. An unknown one is refused: dropping it would be a silent loss."""
    if not isinstance(place.value, dict):
        place.refuse(_("must be an object."))
    for name in table.keys() - place.value.keys():
        place.refuse(_("lacks the field “%(name)s”.") % {"name": name})
    for name in place.value.keys() - table.keys():
        place.refuse(_("has a field “%(name)s” that this version does not know.") % {"name": str(name)[:60]})
    return {name: read(place.key(name)) for name, read in table.items()}


def items(place: Place, *, most: int) -> Iterable[Place]:
    if not isinstance(place.value, list):
        place.refuse(_("must be a list."))
    if len(place.value) > most:
        place.refuse(_("has more than %(most)s entries.") % {"most": f"{most:,}"})
    return (Place(value, f"{place.path}[{index}]") for index, value in enumerate(place.value))


def list_of(read: Reader[Value], *, most: int) -> Reader[tuple[Value, ...]]:
    return lambda place: tuple(read(item) for item in items(place, most=most))


def text(most: int, *, least: int = 0) -> Reader[str]:
    def read(place: Place) -> str:
        if not isinstance(place.value, str):
            place.refuse(_("must be a text."))
        if len(place.value) < least:
            place.refuse(_("must not be empty."))
        if len(place.value) > most:
            place.refuse(_("is longer than %(most)s characters.") % {"most": f"{most:,}"})
        return storable(place.value)

    return read


def whole(least: int = 0, most: int = MAX_WHOLE) -> Reader[int]:
    def read(place: Place) -> int:
        value = place.value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            limits = {"least": f"{least:,}", "most": f"{most:,}"}
            place.refuse(_("must be a whole number from %(least)s to %(most)s.") % limits)
        return value

    return read


def number(place: Place) -> float:
    value = place.value
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= MAX_WHOLE:
        place.refuse(_("must be a number."))
    return float(value)


def flag(place: Place) -> bool:
    if not isinstance(place.value, bool):
        place.refuse(_("must be true or false."))
    return place.value


def moment(place: Place) -> datetime:
    try:
        value = datetime.fromisoformat(place.value)
    except (TypeError, ValueError):
        place.refuse(_("must be a date and time."))
    if value.tzinfo is None:
        place.refuse(_("must name its time zone."))
    # The first and the last year leave room for every time zone.
    if not MINYEAR < value.year < MAXYEAR:
        place.refuse(_("must be a date and time."))
    return value


def one_of(choices: Iterable[str]) -> Reader[str]:
    allowed = tuple(choices)

    def read(place: Place) -> str:
        if not isinstance(place.value, str) or place.value not in allowed:
            place.refuse(_("must be one of: %(choices)s.") % {"choices": ", ".join(filter(None, allowed))})
        return place.value

    return read


def maybe(read: Reader[Value]) -> Reader[Value | None]:
    return lambda place: None if place.value is None else read(place)


def json_object(place: Place) -> dict[str, Any]:
    """Any JSON object, as every database takes it."""
    if not isinstance(place.value, dict):
        place.refuse(_("must be an object."))
    cleaned: dict[str, Any] = _json(place, MAX_DEPTH)
    return cleaned


def _json(place: Place, depth: int) -> Any:
    if not depth:
        place.refuse(_("is nested too deeply."))
    value = place.value
    if isinstance(value, dict):
        return {storable(name): _json(place.key(name), depth - 1) for name in value}
    if isinstance(value, list):
        return [_json(Place(item, f"{place.path}[{index}]"), depth - 1) for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        place.refuse(_("must be a finite number."))
    return storable(value) if isinstance(value, str) else value


PLAIN: Mapping[object, Reader[Any]] = {bool: flag, float: number, datetime: moment, dict: json_object}


@cache
def reader(kind: Any) -> Reader[Any]:
    """How a field of this type is read: as the type is annotated, else by what the type is. None is read as null."""
    inner = get_args(kind)
    if get_origin(kind) is Annotated:
        return inner[1]
    if NoneType in inner:
        return maybe(reader(inner[0]))
    if get_origin(kind) is tuple:
        return list_of(reader(inner[0]), most=MAX_ENTRIES)
    plain = PLAIN.get(get_origin(kind) or kind)
    return plain or (lambda place: kind(**record(place, fields_of(kind))))


@cache
def fields_of(kind: Any) -> Mapping[str, Reader[Any]]:
    """The readers of a dataclass's fields."""
    return {name: reader(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


Counted = Annotated[int, whole(1, MAX_COUNTED)]
Count = Annotated[int, whole(0, MAX_COUNTED)]
Whole = Annotated[int, whole()]
Positive = Annotated[int, whole(1)]
Name = Annotated[str, text(120)]
ShortText = Annotated[str, text(300)]
LongText = Annotated[str, text(20_000_000)]


def once(values: Iterable[object], path: str, field: str) -> set[object]:
    """All values, refused when one occurs twice."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            Place(None, path).refuse(_("has the same “%(field)s” twice: %(value)s.") % {"field": field, "value": value})
        seen.add(value)
    return seen


def find(wanted: object, known: Container[object], path: str) -> None:
    if wanted not in known:
        Place(None, path).refuse(_("refers to %(number)s, which the file does not have.") % {"number": wanted})
