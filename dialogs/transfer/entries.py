"""An entry of a dialog file made from a row: what has the same name in both is taken over."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from django.db.models import Model

Entry = TypeVar("Entry")
Seqs = dict[int, int]


def entry_of(kind: type[Entry], row: Model, **given: Any) -> Entry:
    """An entry with what is given, and else with what the row holds under the same names."""
    names = {field.name for field in fields(kind)} - given.keys()  # type: ignore[arg-type]  # always a dataclass
    return kind(**{name: getattr(row, name) for name in names}, **given)
