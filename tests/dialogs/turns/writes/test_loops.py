"""Circles that an agent goes round in: what is looked at, what is recorded of one, who rests, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.events import cause_of, loop_notice, recent_steps
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.events import dismiss, is_fresh_start_due, log, look_for_loop
from dialogs.turns.writes.lease import Claim
from dialogs.turns.writes.messages import go_on, post_message
from health.compaction.config import AtMilestone, ContextConfig
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextEvent, ContextSettings
from tests.builders import a_call, a_course
from tests.client_dialogs import ask, assistant, result, user
from tests.dialogs.compaction_runs import a_run

READ = {"name": "read_file", "arguments": '{"path": "a", "line": 1}', "content": "Hello"}


@pytest.fixture
def dialog(dialog: Dialog) -> Dialog:
    """With a message of Alice's."""
    post_message(dialog=dialog, content="Read it")
    dialog.refresh_from_db()
    return dialog


def step(dialog: Dialog, *calls: dict[str, str], text: str = "") -> Message:
    """One more answer with its calls, and their results."""
    answer = add_message(
        dialog, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content=text, parent=dialog.current_leaf
    )
    for call in calls:
        made = a_call(answer, **({"status": "done"} | {name: call[name] for name in call if name != "content"}))
        made.result_message = add_message(
            dialog, role=Role.TOOL, origin=MessageOrigin.TOOL, content=call["content"], parent=dialog.current_leaf
        )
        made.save()
    dialog.save()
    return answer


def look(dialog: Dialog) -> ContextEvent | None:
    """As the driver does. What it newly found."""
    before = ContextEvent.objects.filter(code="LOOP_DETECTED").count()
    dialog.refresh_from_db()
    look_for_loop(Claim(dialog.pk, dialog.lease_token, dialog.wake_seq))
    dialog.refresh_from_db()
    found = ContextEvent.objects.filter(code="LOOP_DETECTED")
    return found.latest("id") if found.count() > before else None


def test_a_circle_is_recorded_in_names_and_numbers(dialog: Dialog) -> None:
    for _each in range(4):
        step(dialog, READ, text="I read the secret plan.")

    event = look(dialog)

    assert event is not None
    assert event.facts["seen"] == [{"kind": "equal_calls", "count": 4, "tool": "read_file", "numbers": []}]
    assert "secret" not in str(event.facts)
    assert (event.owner_id, event.agent_id) == (dialog.owner_id, dialog.agent_id)
    assert cause_of(event) == "read_file was called 4 times with the same arguments and the same result."


@pytest.mark.parametrize(
    ("calls", "is_circle"),
    [
        ([{}, {"arguments": '{"line":1,"path":"a"}'}, {"arguments": '{ "path":"a", "line":1 }'}], True),
        ([{"content": f"Hello [{milliseconds} ms]"} for milliseconds in (9, 17, 123, 1_024)], True),
        ([{"content": "x" * 6000 + "y" * number} for number in range(4)], False),
        ([{"status": "withdrawn"}] * 4, False),
    ],
    ids=["arguments-in-another-order", "how-long-it-took", "another-end-of-a-long-result", "nobody-let-them-end"],
)
def test_calls_are_the_same_by_what_they_ask_and_get(
    dialog: Dialog, calls: list[dict[str, str]], is_circle: bool
) -> None:
    for call in calls:
        step(dialog, READ | call)

    assert (look(dialog) is not None) is is_circle


def test_what_the_agent_does_without_words_from_a_person_is_one_stretch(dialog: Dialog) -> None:
    step(dialog, READ)
    add_message(dialog, role=Role.USER, origin=MessageOrigin.PUSH, content="Go on", parent=dialog.current_leaf)
    step(dialog, READ)

    assert [len(one.calls) for one in recent_steps(dialog).steps] == [1, 1]


def test_when_a_person_has_spoken_counting_begins_anew(dialog: Dialog) -> None:
    step(dialog, READ)
    step(dialog, READ)
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Again", parent=dialog.current_leaf)
    step(dialog, READ)

    assert look(dialog) is None


def test_another_version_of_an_answer_is_not_looked_at(dialog: Dialog) -> None:
    asked = dialog.current_leaf
    for _each in range(3):
        step(dialog, READ)
    dialog.current_leaf = asked
    step(dialog, READ)

    assert len(recent_steps(dialog).steps) == 1


def test_over_hits_of_the_stretch_count_and_earlier_ones_do_not(dialog: Dialog) -> None:
    log("OVER_HIT", dialog)
    step(dialog, READ)
    step(dialog, READ)
    assert look(dialog) is None

    log("OVER_HIT", dialog)
    event = look(dialog)

    assert event is not None
    assert event.facts["over_hits"] == 1
    assert cause_of(event).endswith("The context was over its limit meanwhile.")


def test_the_same_circle_is_found_once(dialog: Dialog) -> None:
    for _each in range(3):
        step(dialog, READ)
    assert look(dialog) is not None
    step(dialog, READ)

    assert look(dialog) is None


# --- The notice -------------------------------------------------------------------------------


def in_a_circle(dialog: Dialog) -> None:
    for _each in range(3):
        step(dialog, READ)
    assert look(dialog) is not None
    assert loop_notice(dialog) is not None


def writes(dialog: Dialog) -> None:
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Stop that", parent=dialog.current_leaf)
    dialog.save()


@pytest.mark.parametrize(
    ("ends", "rests"),
    [
        (lambda dialog: dismiss(dialog=dialog), False),
        (lambda dialog: a_run(dialog, trigger="reset", status="applied"), False),
        (a_course, False),
        (writes, False),
        (lambda dialog: go_on(dialog=dialog), True),
    ],
    ids=["dismissed", "fresh start", "new course", "somebody writes", "a resting agent goes on"],
)
def test_a_notice_ends_and_with_it_the_stretch(dialog: Dialog, ends: Callable[[Dialog], object], rests: bool) -> None:
    if rests:
        start_run(dialog=dialog, goal="Read", max_generations=99)
    in_a_circle(dialog)
    if not rests:
        step(dialog, READ)
        step(dialog, READ)

    ends(dialog)
    dialog.refresh_from_db()
    assert loop_notice(dialog) is None
    assert rests or recent_steps(dialog).steps == ()

    step(dialog, READ)
    assert loop_notice(dialog) is None
    assert look(dialog) is None


def test_dismissing_what_is_not_there_does_nothing(dialog: Dialog) -> None:
    dismiss(dialog=dialog)

    assert not ContextEvent.objects.exists()


@pytest.mark.parametrize("on_its_own", [True, False])
@pytest.mark.parametrize("status", ["failed", "cancelled", "skipped"])
def test_a_fresh_start_that_came_to_nothing_leaves_the_notice(dialog: Dialog, status: str, on_its_own: bool) -> None:
    if on_its_own:
        start_run(dialog=dialog, goal="Read", max_generations=99)
    in_a_circle(dialog)

    run = a_run(dialog, trigger="reset", status="queued")
    assert loop_notice(dialog) is None
    CompactionRun.objects.filter(pk=run.pk).update(status=status)

    assert loop_notice(dialog) is not None


# --- Recovery by itself -----------------------------------------------------------------------


def too_much(dialog: Dialog, wanted: AtMilestone) -> None:
    """The agent in a circle, its context over the limit."""
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(ContextConfig(on_over_hits=wanted))})
    step(dialog, READ)
    step(dialog, READ)
    log("OVER_HIT", dialog, message=dialog.current_leaf_id)


@pytest.mark.parametrize(
    ("wanted", "pauses"), [(AtMilestone.AUTOMATIC, False), (AtMilestone.OFFER, True), (AtMilestone.NEVER, True)]
)
def test_nobody_rests_where_a_fresh_start_follows_by_itself(dialog: Dialog, wanted: AtMilestone, pauses: bool) -> None:
    start_run(dialog=dialog, goal="Read", max_generations=99)
    too_much(dialog, wanted)

    event = look(dialog)

    assert event is not None
    assert event.facts["paused"] is pauses
    assert bool(dialog.paused_by) is pauses


@pytest.mark.parametrize(
    ("wanted", "follows"), [(AtMilestone.AUTOMATIC, True), (AtMilestone.OFFER, False), (AtMilestone.NEVER, False)]
)
def test_a_fresh_start_follows_as_the_settings_say_where_a_person_waits(
    dialog: Dialog, wanted: AtMilestone, follows: bool
) -> None:
    too_much(dialog, wanted)

    event = look(dialog)

    assert event is not None
    assert (event.facts["paused"], dialog.paused_by) == (False, "")
    assert is_fresh_start_due(dialog) is follows


# --- Clients ----------------------------------------------------------------------------------


def test_of_a_clients_dialog_only_the_event_is_recorded(alice: User, llm: LLM) -> None:
    key, _secret = create_key(owner=alice, name="aider")
    rounds: list[dict[str, Any]] = []
    for number in range(3):
        rounds += [assistant(None, (f"c{number}", "weather")), result(f"c{number}", "Rain")]
    dialog = ask(key, llm, user("How is it?"), *rounds)

    event = look(dialog)

    assert event is not None
    assert event.facts["seen"][0]["count"] == 3
    assert (dialog.paused_by, dialog.answer_due, loop_notice(dialog)) == ("", True, None)
