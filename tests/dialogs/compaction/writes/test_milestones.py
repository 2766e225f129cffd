"""A milestone: what happens when the task of a P1 message is done, and that it happens once."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import complete
from dialogs.models import LLM, Dialog, Message, MessageMark
from dialogs.transcript.writes.marks import set_pin, set_priority
from dialogs.turns.writes.messages import post_message
from health.compaction.config import AtMilestone, ContextConfig
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextSettings
from tests.dialogs.compacting_builders import a_history, estimated


@pytest.fixture
def task(dialog: Dialog) -> Message:
    """A message of priority P1 at the beginning of a long history."""
    LLM.objects.update(compaction="automatic")
    dialog.refresh_from_db()
    first = a_history(dialog, pairs=12)[0]
    set_priority(dialog=dialog, message_id=first.pk, priority="1", area="To Do List")
    return first


def at_milestone(wanted: AtMilestone) -> None:
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(ContextConfig(at_milestone=wanted))})


def test_a_fresh_start_is_offered_unless_somebody_says_otherwise(alice: User, dialog: Dialog, task: Message) -> None:
    assert complete(dialog=dialog, message_id=task.pk, by=alice)

    assert not MessageMark.objects.exists()
    assert not CompactionRun.objects.exists()


def test_where_it_is_switched_off_nothing_follows(alice: User, dialog: Dialog, task: Message) -> None:
    at_milestone(AtMilestone.NEVER)

    assert not complete(dialog=dialog, message_id=task.pk, by=alice)

    assert not CompactionRun.objects.exists()


def test_an_automatic_fresh_start_begins_at_once(alice: User, dialog: Dialog, task: Message) -> None:
    at_milestone(AtMilestone.AUTOMATIC)
    before = estimated(dialog)

    assert not complete(dialog=dialog, message_id=task.pk, by=alice)
    perform(CompactionRun.objects.get().pk, embedder="static")

    run = CompactionRun.objects.get()
    assert (run.trigger, run.status, run.requested_by) == ("reset", "applied", alice)
    assert estimated(dialog) < 0.7 * before


def test_an_automatic_one_is_offered_while_the_agent_answers(alice: User, dialog: Dialog, task: Message) -> None:
    at_milestone(AtMilestone.AUTOMATIC)
    post_message(dialog=dialog, content="Go on")

    assert complete(dialog=dialog, message_id=task.pk, by=alice)

    assert not CompactionRun.objects.exists()


def test_an_automatic_one_is_offered_where_nothing_is_compacted_by_itself(
    alice: User, dialog: Dialog, task: Message
) -> None:
    at_milestone(AtMilestone.AUTOMATIC)
    dialog.compaction = "off"
    dialog.save()

    assert complete(dialog=dialog, message_id=task.pk, by=alice)

    assert not CompactionRun.objects.exists()


@pytest.mark.parametrize("wanted", AtMilestone)
def test_a_milestone_comes_once(alice: User, dialog: Dialog, task: Message, wanted: AtMilestone) -> None:
    at_milestone(wanted)
    complete(dialog=dialog, message_id=task.pk, by=alice)

    with pytest.raises(DialogError):
        complete(dialog=dialog, message_id=task.pk, by=alice)

    assert CompactionRun.objects.count() == (wanted is AtMilestone.AUTOMATIC)


@pytest.mark.parametrize("priority", ["", "2", "3"])
def test_only_a_p1_message_is_a_milestone(alice: User, dialog: Dialog, task: Message, priority: str) -> None:
    set_priority(dialog=dialog, message_id=task.pk, priority=priority)

    with pytest.raises(DialogError, match="P1"):
        complete(dialog=dialog, message_id=task.pk, by=alice)


def test_a_pin_stays(alice: User, dialog: Dialog, task: Message) -> None:
    set_pin(dialog=dialog, message_id=task.pk, pinned=True)

    complete(dialog=dialog, message_id=task.pk, by=alice)

    mark = MessageMark.objects.get()
    assert (mark.pinned, mark.priority, mark.area) == (True, None, "")
