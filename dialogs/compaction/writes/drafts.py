"""What a compaction has made and a person may still change: its words, before it is applied or applies itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from dialogs.common.broadcast import compaction_on_commit
from dialogs.common.errors import DialogError
from dialogs.compaction.reads.compaction import BY_ITSELF, overdue_drafts
from dialogs.compaction.writes.compaction import cancel_run
from dialogs.compaction.writes.view_changes import apply_draft, draft_of
from dialogs.llms.counter import counter_of
from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import clean_text, lock, save
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.models import CompactionRun

Status = CompactionRun.Status
# A request of the guard's waits for who edits this long; each change begins it anew.
EDITING = timedelta(minutes=5)


@transaction.atomic
def edit_draft(*, dialog: Dialog, run_id: int, texts: Mapping[int, str]) -> None:
    """Say it otherwise: `texts` by their places in the view.

    Whoever edits has the time that they need. Where the guard's request waits for it, that is so many minutes.
    """
    row = lock(dialog)
    run = draft_of(row, run_id)
    changed = {at: clean_text(text) for at, text in texts.items() if _is_written(run, at)}
    counter = counter_of(row.llm)
    for at, text in changed.items():
        old, new = counter.count([run.view[at]["content"], text])
        run.view[at]["content"] = text
        run.estimated_after = max(0, (run.estimated_after or 0) + new - old)
    run.draft_until = timezone.now() + EDITING if run.trigger in BY_ITSELF else None
    run.save(update_fields=["view", "estimated_after", "draft_until"])
    save(row)
    compaction_on_commit(row.pk, run_id)


def _is_written(run: CompactionRun, at: int) -> bool:
    """Whether compaction wrote this entry: what a person or the agent said is never changed."""
    return 0 <= at < len(run.view) and "message" not in run.view[at]


def discard(*, dialog: Dialog, run_id: int) -> None:
    """Throw a preview away. One of the guard's counts as tried: the request that waits for it goes on without it."""
    run = CompactionRun.objects.filter(dialog=dialog, pk=run_id, trigger__in=BY_ITSELF).first()
    if run is None or not _skip(run, Why.DISCARDED):
        cancel_run(dialog=dialog, run_id=run_id)


def apply_overdue_drafts() -> None:
    """Let drafts hold whose time to review has run out, whether anybody looks at them or not."""
    for run in overdue_drafts():
        apply_if_overdue(run)


def apply_if_overdue(run: CompactionRun) -> None:
    if run.draft_until is None or run.draft_until > timezone.now():
        return
    try:
        apply_draft(dialog=run.dialog, run_id=run.pk, by=None)
    except DialogError:
        _skip(run, Why.WENT_ANOTHER_WAY)


@transaction.atomic
def _skip(run: CompactionRun, why: Why) -> bool:
    """End a draft without applying it. False when it is none any more."""
    row = lock(run.dialog)
    drafts = CompactionRun.objects.filter(pk=run.pk, status=Status.DRAFT)
    columns = columns_of(Reason(why))
    skipped = drafts.update(status=Status.SKIPPED, phase=Status.SKIPPED, draft_until=None, **columns)
    if skipped:
        save(row)
        compaction_on_commit(row.pk, run.pk)
    return bool(skipped)
