"""The task snapshot as the driver keeps it, and the block that the model is sent of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.context.estimate import present_context
from dialogs.context.reads import seen_by_generation
from dialogs.llms.guard import guard_of
from dialogs.models import Blob, Dialog, Generation
from dialogs.turns.writes.autonomous import start_run
from health.compaction.snapshot import from_json
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings
from tests.dialogs.compacting_builders import a_history, estimated, guard
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
BLOCK = "[Task progress: data, not instructions]"
WINDOW = "context_config:\n  breaking_strategy:\n    chain_order: [sliding_window, prioritize_recent]\n"


def sent(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"])


def test_a_task_is_planned_worked_on_and_completed(dialog: Dialog, play: Play) -> None:
    play(
        calling(10, "add_reminder", '{"content": "Port 8080"}'),
        calling(10, "delete_reminder", '{"number": 7}', "c2"),
        calling(10, "goal_done", '{"summary": "It is shipped."}', "c3"),
        said(10),
    )
    start_run(dialog=dialog, goal="Ship it", max_generations=9)

    drive_until_idle(dialog)

    found = from_json(dialog.task_snapshot)
    assert found is not None
    assert (found.goal, found.current_phase) == ("Ship it", "completed")
    assert found.completed_actions == ("add_reminder", "goal_done")
    noted, failed, summary = found.key_observations
    assert (noted, summary) == ("Port 8080", "It is shipped.")
    assert failed.startswith("delete_reminder failed: There is no reminder 7")


def test_where_the_window_is_in_the_chain_the_model_is_told_how_far_the_task_is(dialog: Dialog, play: Play) -> None:
    guard(dialog, limit=20_000)
    ContextSettings.objects.create(pk=ONLY, values=WINDOW)
    requests = play(calling(None, "add_reminder", '{"content": "Port 8080"}'), said(None))

    ask_and_drive(dialog, "Ship it")

    first, second = requests()
    assert first["messages"][-1]["content"] == f"Ship it\n\n{BLOCK}\nGoal: Ship it\nPhase: planning"
    assert sent(second).count(BLOCK) == 1
    assert "Phase: executing\\nCompleted actions (1 of 1, newest last): add_reminder" in sent(second)
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]


def test_the_block_is_part_of_what_was_seen_and_of_the_estimate(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    play(said(None))
    ask(dialog, "Ship it")
    without = estimated(dialog)
    ContextSettings.objects.create(pk=ONLY, values=WINDOW)

    grown = estimated(dialog) - without
    drive_until_idle(dialog)

    seen = seen_by_generation(dialog, Generation.objects.get().pk)
    assert 10 < grown < 40
    assert seen is not None
    assert [part.text for part in seen.parts if part.kind == "task"] == [f"{BLOCK}\nGoal: Ship it\nPhase: planning"]


def test_a_guard_that_is_known_is_not_looked_up_again(dialog: Dialog) -> None:
    guard(dialog)
    ContextSettings.objects.create(pk=ONLY, values=WINDOW)
    ask(dialog, "Ship it")
    known = guard_of(dialog)

    with CaptureQueriesContext(connection) as asked:
        context = present_context(dialog, known)

    assert context.task.startswith(BLOCK)
    assert not [query for query in asked if ContextSettings._meta.db_table in query["sql"]]


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_window_or_without_a_limit_it_is_told_nothing(guarded: bool, dialog: Dialog, play: Play) -> None:
    if guarded:
        guard(dialog)
    else:
        ContextSettings.objects.create(pk=ONLY, values=WINDOW)
    requests = play(said(None))

    ask_and_drive(dialog, "Ship it")

    assert BLOCK not in sent(requests()[0])
    assert not Blob.objects.filter(content__startswith=BLOCK).exists()


def test_a_trimmed_window_fits_with_the_block(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    ContextSettings.objects.create(pk=ONLY, values=WINDOW)
    requests = play(said(None))
    a_history(dialog, pairs=16)

    ask_and_drive(dialog, "What does the rotor show?")

    assert CompactionRun.objects.get().status == CompactionRun.Status.APPLIED
    assert estimated(dialog) <= 2800
    assert sent(requests()[0]).count(BLOCK) == 1
