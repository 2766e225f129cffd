"""What compaction knows travels along: the model sees of an imported dialog what it saw of the exported one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import bring_back, request
from dialogs.compaction.writes.view_changes import redo, undo
from dialogs.context.border import chat_request
from dialogs.context.estimate import present_context
from dialogs.models import Course, Dialog, Message
from dialogs.providers.base import ChatMessage
from dialogs.transcript.writes.marks import set_priority
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.laws.invariants import broken_request
from health.compaction.terms.outcome import Step
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.transfer.compactions import a_run_at


def exported(dialog: Dialog) -> Any:
    return json.loads(json.dumps(export_json(dialog)))


def imported(data: Any, owner: User) -> Dialog:
    return Dialog.objects.get(pk=import_dialog(owner=owner, data=data).pk)


def sent(dialog: Dialog) -> tuple[ChatMessage, ...]:
    return chat_request(present_context(dialog_to_drive(dialog.pk))).messages


@pytest.fixture
def compacted(dialog: Dialog, alice: User) -> Dialog:
    """A long talk, compacted by hand by the real engine; then one message of it was brought back."""
    said = a_history(dialog, pairs=12)
    set_priority(dialog=dialog, message_id=said[4].pk, priority="1", area="Calendar")
    run = request(dialog=dialog, by=alice)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    bring_back(dialog=dialog, message_id=run.removed[0], by=alice)
    return Dialog.objects.get(pk=dialog.pk)


def test_the_model_is_sent_the_same_and_undo_and_redo_go_on_in_the_imported_dialog(
    compacted: Dialog, bob: User
) -> None:
    again = imported(exported(compacted), bob)
    first, second = again.compaction_runs.order_by("pk")
    seen = sent(again)
    assert seen == sent(compacted)
    assert 1 < len(seen) < Message.objects.filter(dialog=compacted).count()

    undo(dialog=again, run_id=second.pk, by=bob)
    undo(dialog=again, run_id=first.pk, by=bob)
    said = len(sent(again))
    redo(dialog=again, run_id=first.pk, by=bob)
    redo(dialog=again, run_id=second.pk, by=bob)

    assert said > len(seen)
    assert sent(again) == seen


def test_a_real_run_comes_back_the_same(compacted: Dialog, bob: User) -> None:
    before = exported(compacted)

    after = exported(imported(before, bob))

    assert len(before["compactions"]) == 2
    assert before["compactions"][0]["steps"]
    for name in ("marks", "compactions", "view_changes", "courses"):
        assert after[name] == before[name]


def test_everything_of_the_new_runs_belongs_to_the_new_dialog(working_dialog: Dialog, bob: User) -> None:
    again = imported(exported(working_dialog), bob)

    mine = set(again.messages.values_list("pk", flat=True))
    runs = list(again.compaction_runs.select_related("course", "leaf"))
    assert len(runs) == 4
    assert {run.course.dialog for run in runs} | {run.leaf.dialog for run in runs} == {again}
    assert {run.requested_by for run in runs} == {None}
    for run in runs:
        named = [entry[key] for entry in run.view for key in ("message",) if key in entry]
        covered = [pk for entry in run.view for pk in entry.get("covers", ())]
        read = [int(entry["message"]) for entry in (*run.coverage, *run.losses) if entry["message"]]
        assert mine.issuperset([*named, *covered, *read, *run.removed])
    view = again.generations.latest("pk").manifest["view"]
    assert again.compaction_runs.get(pk=view).status == "undone"


@pytest.mark.parametrize("status", ["queued", "running", "draft"])
def test_what_is_not_over_stays_behind(status: str, working_dialog: Dialog, bob: User) -> None:
    a_run_at(working_dialog, 14, status=status)

    data = exported(working_dialog)

    assert [entry["status"] for entry in data["compactions"]] == ["applied", "applied", "failed", "undone"]
    assert imported(data, bob).compaction_runs.count() == 4


def test_a_file_holds_the_sentences_of_reasons_and_they_are_shown_as_they_are(dialog: Dialog, bob: User) -> None:
    why, warning = Reason(Why.NOTHING_TO_COMPACT, {"tokens": 800, "limit": 5000}), Reason(Why.NOT_UNDER)
    step = Step(phase="hybrid", estimated_before=800, estimated_after=800, changed=False, why=Reason(Why.AT_GOAL))
    a_run(dialog, status="skipped", steps=[step.as_json()], warnings=[warning.as_json()], **columns_of(why))

    (run,) = CompactionRun.objects.filter(dialog=imported(exported(dialog), bob))

    assert (run.told, run.warnings) == (str(why), [str(warning)])
    assert run.steps[0]["note"] == "already at the goal"


def test_a_step_that_never_ended_is_not_told(working_dialog: Dialog) -> None:
    run = CompactionRun.objects.get(status="failed")
    run.steps = [{"phase": "summarize_old", "is_running": True}]
    run.save()

    failed = exported(working_dialog)["compactions"][2]

    assert (failed["status"], failed["steps"]) == ("failed", [])


# --- Files that are wrong -----------------------------------------------------------------------


def seen(message: int | None, content: str | None = None) -> dict[str, Any]:
    return {"message": message, "content": content, "kind": "", "covers": []}


UNSOUND = pytest.mark.parametrize(
    "view",
    [
        pytest.param([], id="nothing"),
        pytest.param([seen(5), seen(6), seen(7), seen(9)], id="a call without its result"),
        pytest.param([seen(5), seen(7), seen(8), seen(9)], id="results without their call"),
        pytest.param([seen(5), seen(6), seen(None, "Now then."), seen(7), seen(8)], id="something in between"),
        pytest.param([seen(6), seen(7), seen(8), seen(5)], id="out of order"),
        pytest.param([seen(5), seen(5)], id="twice"),
        pytest.param([seen(4), seen(5)], id="of another branch"),
        pytest.param([seen(5), seen(9), seen(10)], id="said later"),
    ],
)


@UNSOUND
def test_a_view_that_cannot_be_sent_is_dropped_with_a_note(
    view: list[dict[str, Any]], working_dialog: Dialog, alice: User
) -> None:
    data = exported(working_dialog)
    data["compactions"][1]["view"] = view

    again = imported(data, alice)

    dropped = again.compaction_runs.order_by("pk")[1]
    assert (dropped.status, dropped.view) == ("cancelled", [])
    assert "left out" in dropped.reason
    course = Course.objects.select_related("head_run").get(dialog=again, number=1)
    assert course.head_run == dropped.parent_run
    assert course.view_changes.latest("pk").why == "undone"


def test_where_no_view_can_be_sent_the_course_is_as_it_was_said(compacted: Dialog, alice: User) -> None:
    data = exported(compacted)
    for entry in data["compactions"]:
        twice = next(one for one in entry["view"] if one["message"])
        entry["view"] = [*entry["view"], twice]

    again = imported(data, alice)

    assert Course.objects.get(dialog=again).head_run is None
    assert len(sent(again)) == 1 + Message.objects.filter(dialog=again).count()
    assert broken_request([{"role": one.role} for one in sent(again)]) == []


@pytest.mark.parametrize(("view", "status"), [([seen(5), seen(6)], "applied"), ([seen(5)], "cancelled")])
def test_a_view_made_in_the_middle_of_a_round_holds_unless_its_call_is_missing(
    working_dialog: Dialog, alice: User, view: list[dict[str, Any]], status: str
) -> None:
    """A person compacted while a question of the agent's was open: its results came after the view."""
    data = exported(working_dialog)
    data["compactions"][1] |= {"leaf": 6, "view": view}

    again = imported(data, alice)

    assert again.compaction_runs.order_by("pk")[1].status == status
