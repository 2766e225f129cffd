"""What a tool says of its own success reaches the importance of its result, and so what leaves the window."""

from __future__ import annotations

import pytest

from dialogs.context.estimate import present_context
from dialogs.context.material import units_of
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.reading.importance import importances
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, said

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_that_failed_is_important_and_a_result_that_speaks_of_errors_is_not(dialog: Dialog, play: Play) -> None:
    budget = '{"content": "the error budget is 3 percent"}'
    play(calling(10, "read_course", '{"course": 7}'), calling(10, "add_reminder", budget), said(10, "ok"))

    ask_and_drive(dialog, "Begin")

    units = units_of(present_context(dialog_to_drive(dialog.pk)))
    scores = importances(units)
    assert [scores[unit.id] for unit in units if unit.answers] == [0.8, 0.5]
