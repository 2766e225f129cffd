""" "Report & Continue": a person reports an overflow; the context is compacted, and the answer is tried again.

No estimate is ever lowered for it: the next request is judged as every other.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.common.errors import InvalidMessage
from dialogs.compaction.writes.manual_compaction import request
from dialogs.models import Dialog, Generation
from dialogs.pages.reads.rows import OVERFLOWS, can_be_reported
from dialogs.transcript.writes.dialog_row import lock, written_here
from dialogs.turns.writes.events import Code, log
from health.models import CompactionRun, ContextEvent


@transaction.atomic
def report_and_continue(*, dialog: Dialog, by: User) -> CompactionRun:
    """In one transaction with the report: whoever works at the run finds it when the run is over."""
    row = written_here(lock(dialog))
    failed = Generation.objects.filter(dialog=row).order_by("-pk").first()
    if failed is None or failed.status != Generation.Status.FAILED or failed.error_code not in OVERFLOWS:
        raise InvalidMessage(_("The last answer did not fail because the context was too large."))
    if not can_be_reported(failed):
        raise InvalidMessage(failed.error_message)
    run = request(dialog=dialog, by=by, is_asked=False)
    known = ContextEvent.objects.filter(dialog=row, estimated__isnull=False).first()
    log(
        Code.REPORTED,
        row,
        run=run,
        estimated=known.estimated if known else None,
        limit=known.limit if known else None,
        message=failed.prompt_leaf_id,
    )
    return run
