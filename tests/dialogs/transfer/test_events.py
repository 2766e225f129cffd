"""Events of a dialog's context in its file: told as history, and of no consequence where they are imported."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.common.errors import DialogError
from dialogs.models import Agent, Dialog
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.writes.events import log
from health.models import ContextEvent
from tests.dialogs.transfer.test_round_trip import through_a_file


def copy_of(dialog: Dialog, owner: User) -> Dialog:
    return import_dialog(owner=owner, data=through_a_file(export_json(dialog)))


def test_an_event_is_told_with_where_and_in_which_compaction_it_happened(working_dialog: Dialog, bob: User) -> None:
    copy = copy_of(working_dialog, bob)

    event = ContextEvent.objects.get(dialog=copy, code="TOKEN_LIMIT_EXCEEDED")
    message = copy.messages.get(content="Course 2 begins.")
    assert event.run is not None
    assert (event.run.dialog, event.owner, event.llm) == (copy, bob, working_dialog.llm)
    assert (event.facts["message"], event.facts["course"]) == (message.pk, message.course_id)
    assert (event.estimated, event.limit) == (5200, 5000)


def test_imported_events_are_nobodys_over_hits(dialog: Dialog, agent: Agent, alice: User) -> None:
    log("OVER_HIT", dialog, estimated=6000, limit=5000, message=0, escalated="offer")

    copy = copy_of(dialog, alice)

    event = ContextEvent.objects.get(dialog=copy)
    assert event.agent is None
    assert event.facts == {}
    assert ContextEvent.objects.filter(agent=agent).count() == 1


def test_a_loop_that_was_seen_stays_where_it_was_seen(dialog: Dialog, alice: User) -> None:
    log("LOOP_DETECTED", dialog, seen=[], through=0, course=None, paused=True)

    assert not ContextEvent.objects.filter(dialog=copy_of(dialog, alice)).exists()


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"run": 99}, r"events\[0\].run refers to 99"),
        ({"message": 999}, r"events\[0\].message refers to 999"),
        ({"course": 9}, r"events\[0\].course refers to 9"),
        ({"code": "LOOP_DETECTED"}, r"events\[0\].code must be one of"),
        ({"reason": 5}, r"events\[0\].reason must be a text"),
        ({"seen": []}, r"events\[0\].seen is a field that this version does not know"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(
    changed: dict[str, Any], where: str, working_dialog: Dialog, alice: User
) -> None:
    data = through_a_file(export_json(working_dialog))
    data["events"][0] |= changed

    with pytest.raises(DialogError, match=where):
        import_dialog(owner=alice, data=data)


def test_a_task_in_a_phase_that_there_is_not_is_refused(working_dialog: Dialog, alice: User) -> None:
    data = through_a_file(export_json(working_dialog))
    data["task"]["current_phase"] = "dreaming"

    with pytest.raises(DialogError, match=r"task\.current_phase must be one of: planning, executing, completed"):
        import_dialog(owner=alice, data=data)
