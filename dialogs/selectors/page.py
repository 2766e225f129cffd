"""Everything that a dialog's page and its socket show, read once, under the names the templates use."""

from __future__ import annotations

from typing import Any

from dialogs.models import LLM, Dialog
from dialogs.selectors.autonomous import rest_reason, run_status
from dialogs.selectors.cleanup import has_open_task
from dialogs.selectors.compaction_card import compaction_card
from dialogs.selectors.dialogs import dialog_meter
from dialogs.selectors.driven import driven_by
from dialogs.selectors.loops import loop_notice
from dialogs.selectors.notebook import kept_reminders, removed_reminders
from dialogs.selectors.over_hits import is_fresh_start_offered
from dialogs.selectors.providers import missing_key
from dialogs.selectors.remediation import remediation_status
from dialogs.selectors.rows import AttemptRow
from dialogs.selectors.task_snapshot import task_snapshot
from dialogs.selectors.transcript import SHOWN_ROWS, transcript
from dialogs.selectors.turns import turn_status
from health.selectors import history


def dialog_parts(dialog: Dialog, *, limit: int | None = SHOWN_ROWS) -> dict[str, Any]:
    """Context for every partial of `dialogs.frames`, for the card of compaction, and for `_transcript.html`.

    Nothing is asked of an agent whose dialog a client drives: neither does it rest.
    """
    shown = transcript(dialog, limit=limit)
    return {
        "dialog": dialog,
        "driven": driven_by(dialog),
        "transcript": shown,
        "can_report": any(isinstance(row, AttemptRow) and row.can_report for row in shown.rows),
        "fresh_start_offered": is_fresh_start_offered(dialog),
        "loop": loop_notice(dialog),
        "cleanup_open": has_open_task(dialog),
        "status": turn_status(dialog),
        "run": run_status(dialog),
        "reminders": kept_reminders(dialog.pk),
        "removed_reminders": removed_reminders(dialog.pk),
        "rests": "" if dialog.is_client_driven else rest_reason(dialog),
        "meter": dialog_meter(dialog),
        "remediation": None if dialog.is_client_driven else remediation_status(dialog),
        "task": task_snapshot(dialog),
        "history": history(dialog.pk),
        "card": compaction_card(dialog),
    }


def choosable_llms() -> list[LLM]:
    """LLMs that a dialog may change to: enabled, of an enabled provider whose key is not missing."""
    return [
        llm
        for llm in LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider")
        if not missing_key(llm.provider)
    ]
