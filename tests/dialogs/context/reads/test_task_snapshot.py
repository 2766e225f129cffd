"""How far the task is: as JSON for its owner's programs, and in the health panel."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.context.reads import ContextStats, is_due, stats
from dialogs.driver.writes.courses import start_course
from dialogs.models import LLM, Dialog
from dialogs.turns.writes.messages import post_message
from health.compaction.snapshot import TaskSnapshot, as_json, begun
from health.compaction.terms.units import Call, Role, Unit
from health.configured import ONLY
from health.models import ContextSettings
from tests.builders import an_answer
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.context.test_estimate import show
from tests.health.compaction.builders import a_unit
from tests.health.tokens.test_images import png

GOAL = "Label the boxes"
BUSY = begun(GOAL).updated(
    current_phase="executing",
    completed_actions=[f"step{number}" for number in range(9)],
    key_observations=["read_file failed: <b>none</b>"],
)


def having(dialog: Dialog, snapshot: TaskSnapshot) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(task_snapshot=as_json(snapshot))


def asked(client: Client, dialog: Dialog, name: str) -> Any:
    response = client.get(f"/dialogs/{dialog.pk}/context/{name}")
    assert response.status_code == 200
    return response.json()


def panel(client: Client, dialog: Dialog) -> str:
    """What it says of the task; empty where it says nothing."""
    page = client.get(f"/dialogs/{dialog.pk}/").content.decode()
    return page.partition('<section class="health-task"')[2].partition("</section>")[0]


def test_right_after_a_task_begins_it_is_being_planned(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content=GOAL)

    found = asked(as_alice, dialog, "snapshot")

    assert found == {
        "goal": GOAL,
        "currentPhase": "planning",
        "completedActions": [],
        "keyObservations": [],
        "earlierActions": 0,
    }


def test_of_nine_actions_the_newest_eight_are_told(as_alice: Client, dialog: Dialog) -> None:
    having(dialog, BUSY)

    found = asked(as_alice, dialog, "snapshot")

    assert found["completedActions"] == [f"step{number}" for number in range(1, 9)]
    assert found["earlierActions"] == 1


def test_the_settings_say_how_many_are_told(as_alice: Client, dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  payloads:\n    max_actions: 2\n")
    having(dialog, BUSY)

    assert asked(as_alice, dialog, "snapshot")["completedActions"] == ["step7", "step8"]


def test_the_statistics_count_what_would_be_sent(as_alice: Client, dialog: Dialog) -> None:
    said = a_history(dialog, pairs=3)
    having(dialog, BUSY)

    characters = sum(len(message.content) for message in said)

    assert asked(as_alice, dialog, "stats") == {
        "messageCount": 6,
        "estimatedTokens": -(-characters // 4),
        "hasSnapshot": True,
    }


def test_the_statistics_count_a_hundred_tokens_for_an_image_whatever_the_model(
    as_alice: Client, dialog: Dialog
) -> None:
    LLM.objects.filter(pk=dialog.llm_id).update(model_id="gpt-4o")
    show(dialog, images=2, url=png(2048, 2048))

    assert asked(as_alice, dialog, "stats")["estimatedTokens"] == -(-len("Look.") // 4) + 200


def test_a_new_task_begins_with_nothing(as_alice: Client, alice: User, dialog: Dialog) -> None:
    post_message(dialog=dialog, content=GOAL)
    an_answer(dialog)
    assert asked(as_alice, dialog, "stats")["hasSnapshot"]

    start_course(dialog=dialog)

    assert asked(as_alice, dialog, "stats") == {"messageCount": 0, "estimatedTokens": 0, "hasSnapshot": False}
    assert asked(as_alice, dialog, "snapshot")["goal"] == ""
    assert dialog.messages.count() == 3


def test_the_panel_says_how_far_the_task_is(as_alice: Client, dialog: Dialog) -> None:
    having(dialog, BUSY)

    shown = panel(as_alice, dialog)

    for word in (GOAL, "executing", "step1", "step8", "the newest 8", ">9<", 'start="2"'):
        assert word in shown
    assert "step0" not in shown
    assert "&lt;b&gt;none&lt;/b&gt;" in shown


def test_its_owner_rewords_the_goal(as_alice: Client, as_bob: Client, dialog: Dialog) -> None:
    having(dialog, BUSY)
    settings = f"/dialogs/{dialog.pk}/settings/"
    assert f'href="{settings}"' in panel(as_alice, dialog)
    assert GOAL in as_alice.get(settings).content.decode()

    assert as_bob.post(f"/dialogs/{dialog.pk}/goal/", {"goal": "Mine"}).status_code == 404
    as_alice.post(f"/dialogs/{dialog.pk}/goal/", {"goal": "Label the <crates>"})

    shown = panel(as_alice, dialog)
    assert "Label the &lt;crates&gt;" in shown
    assert "step8" in shown


def test_the_panel_says_nothing_where_no_task_has_begun(as_alice: Client, dialog: Dialog) -> None:
    assert not panel(as_alice, dialog)


# The plan's statistics: characters / 4, images at 100, one line every five steps in debug mode.


def test_the_debug_line_reads_as_the_seed_writes_it() -> None:
    seen = ContextStats(message_count=18, estimated_tokens=4500, has_snapshot=True)

    assert str(seen) == "Context stats: 18 messages, ~4500 tokens"


@pytest.mark.parametrize(
    ("units", "tokens"),
    [
        ([a_unit("x" * 17_996), a_unit("xxxx")], 4500),
        ([a_unit("中" * 40)], 10),  # characters, not bytes
        ([a_unit("look", image_tokens=100)], 1 + 100),
        # Calls and results count as JSON: 12 characters, 4 escapes, 2 quotes.
        ([a_unit("", role=Role.ASSISTANT, calls=(Call(id="c", name="click", arguments='{"x": 1}'),))], 9),
        ([a_unit("ab\n" * 4, role=Role.TOOL, answers="c")], 5),
        # Nested too deep for that: as text.
        ([a_unit("[" * 100_000, role=Role.TOOL, answers="c")], 25_001),
    ],
)
def test_a_token_is_four_characters_and_an_image_a_hundred_tokens(units: list[Unit], tokens: int) -> None:
    assert stats(units).estimated_tokens == tokens


def test_messages_are_counted_and_a_snapshot_is_noticed() -> None:
    found = stats([a_unit(), a_unit()], snapshot=begun("a goal"))

    assert (found.message_count, found.has_snapshot) == (2, True)
    # After a reset there is nothing.
    assert stats([], snapshot=TaskSnapshot()) == ContextStats(message_count=0, estimated_tokens=0, has_snapshot=False)


def test_the_line_is_due_every_five_steps_in_debug_mode_alone() -> None:
    assert [step for step in range(17) if is_due(step, debug=True)] == [5, 10, 15]
    assert not any(is_due(step, debug=False) for step in range(17))
