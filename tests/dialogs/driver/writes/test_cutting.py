"""A request that cannot be made: why, as it is told and stored."""

from __future__ import annotations

import pytest

from dialogs.driver.writes.cutting import refuse
from dialogs.models import Dialog, Generation
from dialogs.turns.writes import lease
from dialogs.turns.writes.messages import post_message
from health.compaction.terms.reasons import Reason, Why
from health.models import CompactionRun
from tests.dialogs.compacting_builders import guard, long_text
from tests.dialogs.compaction_runs import a_run

Status = CompactionRun.Status
REDUCED = Reason(Why.REDUCED, {"tokens": 3000, "limit": 3500})
STILL_OVER = Reason(Why.STILL_OVER, {"tokens": 4000, "limit": 3500})


@pytest.fixture
def dialog(dialog: Dialog) -> Dialog:
    """With a message that is larger than its agent's limit."""
    guard(dialog)
    post_message(dialog=dialog, content=long_text(1, sentences=200))
    dialog.refresh_from_db()
    return dialog


def told_after(dialog: Dialog, status: str, why: Reason) -> str:
    """What the person reads, where compaction ended so before."""
    a_run(dialog, status=status, reason=str(why), why=why.as_json())
    claim = lease.claim(dialog.pk)
    assert claim
    refuse(claim, why=None)
    return Generation.objects.get().error_message


def test_why_compaction_did_not_help_is_told_with_the_sizes(dialog: Dialog) -> None:
    told = told_after(dialog, Status.FAILED, STILL_OVER)

    assert told.startswith("The request needs ≈")
    assert told.endswith(f" {STILL_OVER}")


@pytest.mark.parametrize("status", [Status.APPLIED, Status.UNDONE])
def test_what_a_compaction_reached_is_not_told_as_a_reason(dialog: Dialog, status: str) -> None:
    told = told_after(dialog, status, REDUCED)

    assert told.startswith("The request needs ≈")
    assert str(REDUCED) not in told
