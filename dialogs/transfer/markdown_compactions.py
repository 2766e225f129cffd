"""Compactions in the Markdown file: a thin line each, after the message where it happened. What was said stays."""

from __future__ import annotations

from collections import defaultdict

from django.utils.translation import pgettext

from dialogs.models import Dialog
from dialogs.selectors.compaction_rows import HEAVY, CompactionRow
from health.models import CompactionRun

Status = CompactionRun.Status
# Of the others nothing came.
TOLD = (Status.APPLIED, Status.UNDONE, Status.FAILED)


def compactions_by_leaf(dialog: Dialog) -> defaultdict[int, list[CompactionRun]]:
    """Those worth a line, by the newest message that each of them had before it."""
    found: defaultdict[int, list[CompactionRun]] = defaultdict(list)
    for run in CompactionRun.objects.filter(dialog=dialog, status__in=TOLD).defer(*HEAVY).order_by("pk"):
        found[run.leaf_id].append(run)
    return found


def told_compaction(run: CompactionRun) -> str:
    """Both sizes are estimates."""
    row = CompactionRow(run=run)
    parts = [str(row.title), str(run.get_trigger_display())]
    if row.has_sizes and run.estimated_before is not None and run.estimated_after is not None:
        parts.insert(1, f"≈{run.estimated_before:,} → ≈{run.estimated_after:,} {pgettext('unit', 'tokens')}")
    return f"*— {' · '.join(parts)} —*"
