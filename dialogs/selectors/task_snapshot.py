"""How far a dialog's task is, as people and programs see it; and seed 3's statistics of the context."""

from __future__ import annotations

from dialogs.compacting.material import SYSTEM, units_of
from dialogs.compacting.present import present_context
from dialogs.models import Dialog, Message
from dialogs.models.message import MessageOrigin
from health.compaction.snapshot import TaskSnapshot, from_json
from health.compaction.statistics import ContextStats, stats
from health.configured import context_config


def task_snapshot(dialog: Dialog) -> TaskSnapshot | None:
    """With as many of its newest actions as the settings say. None where no task has begun."""
    snapshot = from_json(dialog.task_snapshot)
    return snapshot.shown(context_config().payloads.max_actions) if snapshot else None


def context_stats(dialog: Dialog) -> ContextStats:
    """Of the messages that the model would be sent now; tokens are characters / 4, as the seed counts.

    Our own words that open a course are no message of the task.
    """
    context = present_context(dialog)
    opening = {str(one.pk) for one in context.branch if _opens_course(one)}
    units = [unit for unit in units_of(context) if unit.id != SYSTEM and unit.id not in opening]
    return stats(units, snapshot=from_json(dialog.task_snapshot))


def _opens_course(message: Message) -> bool:
    return message.origin == MessageOrigin.HANDOVER
