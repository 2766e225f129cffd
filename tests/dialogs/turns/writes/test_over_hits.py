"""Over-hits within an hour: when a fresh start is offered or due, to whom, and that it comes once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Agent, Course, Dialog
from dialogs.turns.reads.events import is_fresh_start_offered
from dialogs.turns.state import Guarding
from dialogs.turns.writes import lease
from dialogs.turns.writes.events import decline, is_fresh_start_due, log, note_pressure, open_if_frequent
from dialogs.turns.writes.messages import edit_message, post_message
from health.compaction.config import AtMilestone, ContextConfig
from health.compaction.terms.configuration import dump
from health.compaction.terms.pressure import Pressure
from health.models import CleanupTask, ContextEvent, ContextSettings
from tests.client_dialogs import ask, user
from tests.dialogs.compacting_builders import guard
from tests.dialogs.compaction_runs import a_run

TOO_MUCH = Guarding(pressure=Pressure.OVERFLOW, tokens=6000, limit=5000)


@pytest.fixture
def dialog(dialog: Dialog) -> Dialog:
    """With a guarded agent and a message that is to be answered."""
    guard(dialog)
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    return dialog


def on_over_hits(wanted: AtMilestone) -> None:
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(ContextConfig(on_over_hits=wanted))})


def earlier(dialog: Dialog, *minutes: int) -> None:
    for ago in minutes:
        event = log("OVER_HIT", dialog, message=0)
        ContextEvent.objects.filter(pk=event.pk).update(happened_at=timezone.now() - timedelta(minutes=ago))


def over_hit(dialog: Dialog) -> None:
    """The request that is due now is too much; the driver has seen that, and rests."""
    claim = lease.claim(dialog.pk)
    assert claim
    note_pressure(claim, TOO_MUCH)
    lease.release(claim)
    dialog.refresh_from_db()


def test_the_third_within_an_hour_offers_a_fresh_start(dialog: Dialog) -> None:
    earlier(dialog, 59, 1)

    over_hit(dialog)

    assert is_fresh_start_offered(dialog)
    assert not is_fresh_start_due(dialog)


def test_three_in_more_than_an_hour_offer_nothing(dialog: Dialog) -> None:
    earlier(dialog, 61, 1)

    over_hit(dialog)

    assert not is_fresh_start_offered(dialog)


def test_a_p1_agents_first_one_is_enough(dialog: Dialog) -> None:
    Agent.objects.filter(pk=dialog.agent_id).update(is_p1=True)

    over_hit(dialog)

    assert is_fresh_start_offered(dialog)


def test_those_of_another_agent_do_not_count(dialog: Dialog) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    theirs = Dialog.objects.create(owner=dialog.owner, agent=zoe, llm=dialog.llm, active_at=timezone.now())
    earlier(theirs, 2, 1)

    over_hit(dialog)

    assert not is_fresh_start_offered(dialog)


def test_within_the_hour_nothing_is_offered_a_second_time(dialog: Dialog) -> None:
    earlier(dialog, 3, 2)
    over_hit(dialog)
    decline(dialog=dialog)
    assert dialog.current_leaf
    edit_message(dialog=dialog, message=dialog.current_leaf, content="Anew")

    over_hit(dialog)

    assert ContextEvent.objects.filter(code="OVER_HIT").count() == 4
    assert not is_fresh_start_offered(dialog)


def test_who_declines_in_one_dialog_is_asked_in_another(dialog: Dialog) -> None:
    earlier(dialog, 3, 2)
    over_hit(dialog)
    decline(dialog=dialog)
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=timezone.now())
    Course.objects.create(dialog=other, number=1)
    post_message(dialog=other, content="Hello there")

    over_hit(other)

    assert is_fresh_start_offered(other)
    assert not is_fresh_start_offered(dialog)


def test_an_offer_that_was_taken_is_gone(dialog: Dialog) -> None:
    earlier(dialog, 2, 1)
    over_hit(dialog)

    a_run(dialog, trigger="reset")

    assert not is_fresh_start_offered(dialog)


def test_an_offer_whose_fresh_start_failed_stands(dialog: Dialog) -> None:
    earlier(dialog, 2, 1)
    over_hit(dialog)

    a_run(dialog, trigger="reset", status="failed")

    assert is_fresh_start_offered(dialog)


def test_an_automatic_one_is_due_until_it_has_begun(dialog: Dialog) -> None:
    on_over_hits(AtMilestone.AUTOMATIC)
    earlier(dialog, 2, 1)
    over_hit(dialog)
    assert is_fresh_start_due(dialog)

    a_run(dialog, trigger="reset")

    assert not is_fresh_start_due(dialog)
    assert not is_fresh_start_offered(dialog)


def test_where_it_is_switched_off_nothing_follows(dialog: Dialog) -> None:
    on_over_hits(AtMilestone.NEVER)
    earlier(dialog, 2, 1)

    over_hit(dialog)

    assert not is_fresh_start_due(dialog)
    assert not is_fresh_start_offered(dialog)


@pytest.mark.parametrize("wanted", [AtMilestone.OFFER, AtMilestone.AUTOMATIC])
def test_a_clients_dialog_is_never_begun_afresh(alice: User, llm: LLM, wanted: AtMilestone) -> None:
    on_over_hits(wanted)
    key, _secret = create_key(owner=alice, name="aider")
    theirs = ask(key, llm, user("Hello"))
    guard(theirs)
    earlier(theirs, 2, 1)

    assert note_pressure(lease.Claim(theirs.pk, theirs.lease_token, theirs.wake_seq), TOO_MUCH)

    assert ContextEvent.objects.filter(code="OVER_HIT", dialog=theirs).count() == 3
    assert not ContextEvent.objects.filter(facts__has_key="escalated").exists()
    assert not is_fresh_start_offered(theirs)
    assert not is_fresh_start_due(theirs)


# Tasks to clean a context up: when one opens, and that there is never a second.


def warned(dialog: Dialog, *minutes: int) -> None:
    for ago in minutes:
        event = log("WARNING", dialog)
        ContextEvent.objects.filter(pk=event.pk).update(happened_at=timezone.now() - timedelta(minutes=ago))
    open_if_frequent(dialog)


@pytest.mark.parametrize(
    ("before", "now", "tasks"),
    [((59,), (30,), 0), ((59, 30), (0,), 1), ((61, 30), (0,), 0), ((3, 2, 1), (0,), 1)],
    ids=["the-second", "the-third", "in-more-than-an-hour", "more-open-no-second-task"],
)
def test_the_third_warning_within_an_hour_opens_a_task_for_the_owner(
    dialog: Dialog, alice: User, before: tuple[int, ...], now: tuple[int, ...], tasks: int
) -> None:
    warned(dialog, *before)
    warned(dialog, *now)

    assert [task.assignee for task in CleanupTask.objects.all()] == [alice] * tasks


def test_warnings_that_were_imported_do_not_count(dialog: Dialog) -> None:
    log("WARNING", dialog)
    log("WARNING", dialog)
    ContextEvent.objects.update(agent=None)

    warned(dialog, 0)

    assert not CleanupTask.objects.exists()


def test_after_a_task_was_closed_only_later_warnings_count(dialog: Dialog, alice: User) -> None:
    warned(dialog, 3, 2, 1)
    CleanupTask.objects.update(closed_at=timezone.now(), closed_by=alice)

    warned(dialog, 0)

    assert CleanupTask.objects.filter(closed_at=None).count() == 0
