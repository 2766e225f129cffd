"""Field types for files from outside, which pydantic checks, and the texts for wrong ones.

The entries of a file are frozen dataclasses derived from `Record`: pydantic parses them like its own models, but they
take less memory and are not checked when we create them. A validation error becomes a path, such as
`messages[3].parent`, and a translated sentence.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ConfigDict, Field, GetCoreSchemaHandler, PlainValidator, ValidationError
from pydantic_core import CoreSchema, core_schema

from dialogs.common.text import storable

# What the smallest integer column of every database takes.
MAX_WHOLE = 2_147_483_647
# For numbers that are counted on from: far more than any dialog needs, and far from the column's end.
MAX_COUNTED = 1_000_000_000
MAX_DEPTH = 50
MAX_ENTRIES = 50_000
MAX_FIELDS = 100
# The most characters of a field's name that an error quotes.
NAME_CHARS = 200


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """An object of a file, with exactly its fields: dropping an unknown one would be a silent loss."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(no_crowd, handler(source))


def no_crowd(value: Any) -> Any:
    """Refuse an object of too many fields: pydantic makes an error for each unknown one, which may take all memory."""
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        raise ValueError(_("has more than %(most)s fields.") % {"most": MAX_FIELDS})
    return value


@dataclasses.dataclass(frozen=True)
class Chars:
    """A text of so many characters, as every database takes it."""

    most: int
    least: int = 0

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        limited = core_schema.str_schema(strict=True, min_length=self.least, max_length=self.most)
        return core_schema.no_info_before_validator_function(_storable, limited)


def _storable(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


class OneOf:
    """One of these texts."""

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = [str(choice) for choice in choices]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        return core_schema.custom_error_schema(
            core_schema.literal_schema(self.choices),
            custom_error_type="one_of",
            custom_error_message="one of",
            custom_error_context={"choices": ", ".join(filter(None, self.choices))},
        )


def whole(least: int = 0, most: int = MAX_WHOLE) -> Any:
    return Field(strict=True, ge=least, le=most)


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(_("must be a date and time.")) from None
    if moment.tzinfo is None:
        raise ValueError(_("must name its time zone."))
    # The first and the last year leave room for every time zone.
    if not MINYEAR < moment.year < MAXYEAR:
        raise ValueError(_("must be a date and time."))
    return moment


class WrongInside(ValueError):
    """Something is wrong at this path inside a field."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def _json_object(value: Any) -> dict[str, Any]:
    """Any JSON object, as every database takes it."""
    if not isinstance(value, dict):
        raise ValueError(_("must be an object."))
    cleaned: dict[str, Any] = _json(value, "", MAX_DEPTH)
    return cleaned


def _json(value: Any, path: str, depth: int) -> Any:
    if not depth:
        raise WrongInside(path, _("is nested too deeply."))
    if isinstance(value, dict):
        return {storable(name): _json(one, path + _step(name), depth - 1) for name, one in value.items()}
    if isinstance(value, list):
        return [_json(one, f"{path}[{index}]", depth - 1) for index, one in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongInside(path, _("must be a finite number."))
    return _storable(value)


Counted = Annotated[int, whole(1, MAX_COUNTED)]
Count = Annotated[int, whole(0, MAX_COUNTED)]
Whole = Annotated[int, whole()]
Positive = Annotated[int, whole(1)]
Number = Annotated[float, Field(strict=True, ge=-MAX_WHOLE, le=MAX_WHOLE, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Chars(120)]
ShortText = Annotated[str, Chars(300)]
LongText = Annotated[str, Chars(20_000_000)]
Moment = Annotated[datetime, PlainValidator(_moment)]
JsonObject = Annotated[dict[str, Any], PlainValidator(_json_object)]
Item = TypeVar("Item")
# A list is given up at its first wrong entry: a file of a million wrong ones costs no more than a file of one.
Many = Annotated[tuple[Item, ...], Field(max_length=MAX_ENTRIES, fail_fast=True)]

# By pydantic's names for what is wrong. The words in them are of its `ctx`.
PROBLEMS: Mapping[str, Promise] = {
    "missing": gettext_lazy("is missing."),
    "unexpected_keyword_argument": gettext_lazy("is a field that this version does not know."),
    "dataclass_type": gettext_lazy("must be an object."),
    "dict_type": gettext_lazy("must be an object."),
    "tuple_type": gettext_lazy("must be a list."),
    "too_long": gettext_lazy("has more than %(max_length)s entries."),
    "too_short": gettext_lazy("must not be empty."),
    "string_type": gettext_lazy("must be a text."),
    "string_unicode": gettext_lazy("has signs that are no text."),
    "string_too_long": gettext_lazy("is longer than %(max_length)s characters."),
    "string_too_short": gettext_lazy("must not be empty."),
    "int_type": gettext_lazy("must be a whole number."),
    "float_type": gettext_lazy("must be a number."),
    "finite_number": gettext_lazy("must be a number."),
    "greater_than_equal": gettext_lazy("must not be less than %(ge)s."),
    "less_than_equal": gettext_lazy("must not be more than %(le)s."),
    "bool_type": gettext_lazy("must be true or false."),
    "one_of": gettext_lazy("must be one of: %(choices)s."),
}
OTHER_PROBLEM = gettext_lazy("cannot be read.")
Location = tuple[int | str, ...]


def problems_of(error: ValidationError) -> list[tuple[Location, str, str]]:
    """Each problem as (path, part inside the value, a sentence that says what the value must be)."""
    found = error.errors(include_url=False, include_input=False)
    # A misspelt field gives two errors, unknown and missing: the unknown name says more.
    return [_problem(one) for one in sorted(found, key=lambda one: one["type"] == "missing")]


def _problem(one: Any) -> tuple[Location, str, str]:
    context = one.get("ctx", {})
    if isinstance(own := context.get("error"), ValueError):
        return one["loc"], getattr(own, "path", ""), str(own)
    shown = {name: value if isinstance(value, str) else f"{value:,.0f}" for name, value in context.items()}
    return one["loc"], "", str(PROBLEMS.get(one["type"], OTHER_PROBLEM)) % shown


def path_of(location: Location) -> str:
    """`messages[3].parent`. pydantic's own steps are left out: members of a union, and "[key]" for a name itself."""
    return "".join(map(_step, location)).removeprefix(".")


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return "" if step == "[key]" or step.startswith(":") else f".{step[:NAME_CHARS]}"
