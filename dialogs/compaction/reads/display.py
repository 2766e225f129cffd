"""How a person wants to see compactions. Who never said gets the defaults, which are not stored."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, QuerySet

from dialogs.models import CompactionDisplay
from dominds.prepared import prepared


def display_of(user_id: int) -> CompactionDisplay:
    return _said_by.first(user_id) or CompactionDisplay(user_id=user_id)


@prepared(BigIntegerField())
def _said_by(user_id: Any) -> QuerySet[CompactionDisplay]:
    return CompactionDisplay.objects.filter(pk=user_id).order_by()
