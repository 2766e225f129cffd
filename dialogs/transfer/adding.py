"""Many rows at once, with the moments of their entries: Django would set them to now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from django.db.models import Model

BATCH = 500
Row = TypeVar("Row", bound=Model)


def add(table: type[Row], rows: Iterable[Row], entries: Sequence[object], *moments: str) -> list[Row]:
    """Insert one row for each entry; the `moments` have the same name in both."""
    listed = list(rows)
    table._default_manager.bulk_create(listed, batch_size=BATCH)
    for name in moments:
        for row, entry in zip(listed, entries, strict=True):
            setattr(row, name, getattr(entry, name))
        table._default_manager.bulk_update(listed, [name], batch_size=BATCH)
    return listed
