"""The template context of a dialog's page and its socket, read once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery, UUIDField

from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.context.reads import task_snapshot
from dialogs.llms.reads import missing_key
from dialogs.models import LLM, ClientConversation, Dialog, Generation, Reminder
from dialogs.models.dialog import PausedBy
from dialogs.pages.reads.rows import AttemptRow
from dialogs.pages.reads.transcript import SHOWN_ROWS, present_kinds, transcript
from dialogs.sample.reads import tour_of
from dialogs.transcript.reads.autonomous import rest_reason, run_status
from dialogs.transcript.reads.dialogs import dialog_meter
from dialogs.transcript.reads.tool_calls import offers_notes, unmade_tool
from dialogs.turns.reads.events import has_open_task, is_fresh_start_offered, loop_notice
from dialogs.turns.reads.remediation import remediation_status
from dialogs.turns.reads.turns import turn_status
from dominds.prepared import prepared
from health.selectors import history


def dialog_parts(dialog: Dialog, *, limit: int | None = SHOWN_ROWS) -> dict[str, Any]:
    """Context for every partial of `dialogs.pages.live_view`, for the card of compaction, and for `_transcript.html`.

    Nothing is asked of an agent whose dialog a client drives: neither does it rest.
    """
    has = present_kinds(dialog)
    rests = "" if dialog.is_client_driven else rest_reason(dialog)
    shown, driven = transcript(dialog, limit=limit, has=has), driven_by(dialog)
    takes_notes = (driven is None or driven.offers_recall) and offers_notes(dialog)
    return {
        "dialog": dialog,
        "driven": driven,
        "transcript": shown,
        "can_report": any(isinstance(row, AttemptRow) and row.can_report for row in shown.rows),
        "fresh_start_offered": has.events and is_fresh_start_offered(dialog),
        "loop": loop_notice(dialog) if has.events else None,
        "cleanup_open": has.tasks and has_open_task(dialog),
        "status": turn_status(dialog),
        "run": run_status(dialog) if has.autonomous else None,
        "takes_notes": takes_notes,
        "reminders": kept_reminders(dialog.pk) if has.reminders else [],
        "removed_reminders": removed_reminders(dialog.pk) if has.reminders else [],
        "rests": rests,
        "unmade_tool": unmade_tool(dialog) if rests == PausedBy.ROUNDS else "",
        "meter": dialog_meter(dialog),
        "remediation": None
        if dialog.is_client_driven
        else remediation_status(dialog, takes_notes=takes_notes, was_asked=has.prompts),
        "task": task_snapshot(dialog),
        "history": history(dialog.pk),
        "card": compaction_card(dialog) if has.runs else None,
        "tour": tour_of(dialog),
    }


def choosable_llms() -> list[LLM]:
    """LLMs that a dialog may change to: enabled, of an enabled provider whose key is not missing."""
    return [llm for llm in _enabled_llms() if not missing_key(llm.provider)]


@prepared()
def _enabled_llms() -> QuerySet[LLM]:
    return LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider")


# The most removed reminders on the page: an agent may remove thousands, and the page is sent again and again.
SHOWN_REMOVED = 20


@prepared(UUIDField())
def kept_reminders(dialog_id: Any) -> QuerySet[Reminder]:
    """In their order."""
    return Reminder.objects.filter(dialog=dialog_id, removed_at=None).select_related("course")


def removed_reminders(dialog_id: UUID) -> list[Reminder]:
    """The newest removed ones, last removed first."""
    return _removed(dialog_id)


@prepared(UUIDField())
def _removed(dialog_id: Any) -> QuerySet[Reminder]:
    removed = Reminder.objects.filter(dialog=dialog_id, removed_at__isnull=False).select_related("course")
    return removed.order_by("-removed_at", "-number")[:SHOWN_REMOVED]


def driven_by(dialog: Dialog) -> ClientConversation | None:
    """The client, with when it `asked_at` last, also without new messages; None where people write in the browser."""
    if not dialog.is_client_driven:
        return None
    made = Generation.objects.filter(dialog=OuterRef("dialog")).order_by("-pk")
    clients = ClientConversation.objects.select_related("api_key")
    return clients.annotate(asked_at=Subquery(made.values("started_at")[:1])).get(dialog=dialog)
