"""How a person wants to see compactions: kept."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from dialogs.models import CompactionDisplay


def set_display(*, user: User, **values: Any) -> CompactionDisplay:
    """Every value has been checked by `CompactionDisplayForm`."""
    display, _created = CompactionDisplay.objects.update_or_create(user=user, defaults=values)
    return display
