"""A history that is compacted while the agent waits for an answer: that is the result of its call all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.llms.guard import by_limit
from dialogs.models import Dialog, Question
from dialogs.turns.writes.messages import answer_question, post_message
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)


def in_the_box(dialog: Dialog) -> None:
    answer_question(dialog=dialog, question_id=Question.objects.get().pk, answer="Blue")


def with_a_message(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Blue")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("answer", [in_the_box, with_a_message])
def test_the_agent_goes_on(dialog: Dialog, play: Play, answer: Callable[[Dialog], None], times: int) -> None:
    guard(dialog)
    a_history(dialog, pairs=12)
    requests = play(calling(10, "ask_human", '{"question": "Red or blue?"}'), said(10, "Blue it is."))
    ask_and_drive(dialog, "Paint the fence.")
    for _time in range(times):
        run = queue_run(dialog, guard=by_limit(dialog), trigger="manual", requested_by=dialog.owner)
        perform(run.pk, embedder="static")

    answer(dialog)
    drive_until_idle(dialog)

    assert CompactionRun.objects.filter(status="applied").exists()
    assert dialog.paused_by == ""
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Blue it is."
    assert "Blue" in str(requests()[-1]["messages"])
