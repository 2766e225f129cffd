"""Why the engine did something or did not, in the reader's language: its codes are put through gettext when shown."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext

from health.compaction.terms.reasons import Reason, Why, from_json, text_of


def calm_words(told: Any) -> tuple[str, str] | None:
    """The words for a compaction that nobody needed: one line, and what stands below it. None for all other reasons.

    Either there is nothing to compact, or compaction cannot free more: then the largest contributors and what to do.
    """
    reason = told if isinstance(told, Reason) else from_json(told)
    if reason is None:
        return None
    if reason.why in (Why.NOTHING_TO_COMPACT, Why.NOTHING_IN_UNKNOWN):
        return in_words(reason), ""
    if reason.why is Why.STUCK:
        return gettext("Compaction cannot free more"), in_words(reason.args["why"])
    return None


def in_words(told: Any) -> str:
    """A reason, also one that was stored. An old row's text, and a code of another version, are shown as they are."""
    reason = told if isinstance(told, Reason) else from_json(told)
    return reason.told(gettext) if reason else text_of(told or "")
