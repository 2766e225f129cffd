"""How a person wants to see compactions. Who never said gets the defaults, which are not stored."""

from __future__ import annotations

from dialogs.models import CompactionDisplay


def display_of(user_id: int) -> CompactionDisplay:
    return CompactionDisplay.objects.filter(pk=user_id).first() or CompactionDisplay(user_id=user_id)
