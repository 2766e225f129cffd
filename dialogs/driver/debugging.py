"""Seed 3's line of statistics in the log, after every fifth generation of a dialog.

Only where the log is kept at DEBUG (`manage.py up --debug`): else nothing is asked.
"""

from __future__ import annotations

import logging
from uuid import UUID

from dialogs.models import Generation
from dialogs.selectors.task_snapshot import context_stats
from dialogs.selectors.turns import dialog_to_drive
from health.compaction.statistics import is_due

logger = logging.getLogger(__name__)


def log_statistics(dialog_id: UUID) -> None:
    """How many messages the next one is sent at least, and about how many tokens. Call it after one that finished:
    only those count."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    steps = Generation.objects.filter(dialog=dialog_id, status=Generation.Status.FINISHED).count()
    if is_due(steps, debug=True):
        logger.debug("%s", context_stats(dialog_to_drive(dialog_id)))
