"""What a compaction has made and a person may still change: its words, before it is applied or applies itself."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.broadcast import compaction_on_commit
from dialogs.compacting.estimate import counter_of
from dialogs.errors import DialogError
from dialogs.models import Dialog
from dialogs.selectors.compaction import overdue_drafts
from dialogs.services.cleaning import clean_text
from dialogs.services.compaction import WENT_ANOTHER_WAY
from dialogs.services.rows import lock, save
from dialogs.services.view_changes import apply_draft
from health.models import CompactionRun

Status = CompactionRun.Status


@transaction.atomic
def edit_draft(*, dialog: Dialog, run_id: int, texts: Mapping[int, str]) -> None:
    """Say it otherwise: `texts` by their places in the view. Whoever edits has the time that they need."""
    row = lock(dialog)
    run = CompactionRun.objects.select_for_update().filter(dialog=row, pk=run_id, status=Status.DRAFT).first()
    if run is None:
        raise DialogError(_("This preview is no longer there."))
    changed = {at: clean_text(text) for at, text in texts.items() if _is_written(run, at)}
    counter = counter_of(row.llm)
    for at, text in changed.items():
        old, new = counter.count([run.view[at]["content"], text])
        run.view[at]["content"] = text
        run.estimated_after = max(0, (run.estimated_after or 0) + new - old)
    run.draft_until = None
    run.save(update_fields=["view", "estimated_after", "draft_until"])
    save(row)
    compaction_on_commit(row.pk, run_id)


def _is_written(run: CompactionRun, at: int) -> bool:
    """By compaction: what a person or the agent said is never changed."""
    return 0 <= at < len(run.view) and "message" not in run.view[at]


def apply_overdue_drafts() -> int:
    """Let drafts hold whose time to review has run out, whether anybody looks at them or not. How many did."""
    applied = 0
    for run in overdue_drafts():
        try:
            apply_draft(dialog=run.dialog, run_id=run.pk, by=None)
            applied += 1
        except DialogError:
            _give_up(run)
    return applied


@transaction.atomic
def _give_up(run: CompactionRun) -> None:
    row = lock(run.dialog)
    drafts = CompactionRun.objects.filter(pk=run.pk, status=Status.DRAFT)
    if drafts.update(status=Status.SKIPPED, phase=Status.SKIPPED, reason=WENT_ANOTHER_WAY, draft_until=None):
        save(row)
        compaction_on_commit(row.pk, run.pk)
