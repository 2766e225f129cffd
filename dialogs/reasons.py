"""Why the engine did something or did not, in the reader's language: its codes are put through gettext when shown."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext

from health.compaction.reasons import Reason, from_json, text_of


def in_words(told: Any) -> str:
    """A reason, also one that was stored. An old row's text, and a code of another version, are shown as they are."""
    reason = told if isinstance(told, Reason) else from_json(told)
    return reason.told(gettext) if reason else text_of(told or "")
