"""What is read of a course for the next request: with a view no more than that shows, however much was said before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext

from dialogs.context.border import Context, chat_request
from dialogs.context.estimate import next_context, present_context
from dialogs.context.material import of_the_floor
from dialogs.driver import run
from dialogs.driver.calls import begin, continuing
from dialogs.llms.counter import counter_of
from dialogs.models import Course, Dialog, Message, MessageMark, RemediationPrompt
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.model_view import Entry, dump
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import lease
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.compaction_runs import an_applied_run
from tests.dialogs.driver.conftest import Play, ask, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
MOST_STATEMENTS = 54


@contextmanager
def rows_of_messages() -> Iterator[list[int]]:
    """The ids of the messages that are read."""
    read: list[int] = []

    def note(instance: Message, **_: object) -> None:
        read.append(instance.pk)

    post_init.connect(note, sender=Message)
    try:
        yield read
    finally:
        post_init.disconnect(note, sender=Message)


def compacted(dialog: Dialog, *, last: int = 3) -> CompactionRun:
    """A view of the first message, a summary, and the last ones."""
    dialog.refresh_from_db()
    branch = course_branch(dialog.current_leaf)
    summary = Entry(content="So much was said.", kind="summary", covers=tuple(one.pk for one in branch[1:-last]))
    kept = [Entry(message_id=one.pk) for one in branch[-last:]]
    return an_applied_run(dialog, view=dump([Entry(message_id=branch[0].pk), summary, *kept]))


def later(dialog: Dialog, role: Role, origin: MessageOrigin, content: str) -> Message:
    dialog.refresh_from_db()
    message = add_message(dialog, role=role, origin=origin, content=content, parent=dialog.current_leaf)
    dialog.save()
    return message


def both(dialog: Dialog) -> tuple[Context, Context]:
    """What is read for the next request, and the same with all of the course."""
    found = dialog_to_drive(dialog.pk)
    return next_context(found), present_context(found)


def told(context: Context) -> object:
    return chat_request(continuing(context)).messages


def test_a_turn_of_a_long_conversation_reads_as_few_rows_as_one_of_a_short_one(dialog: Dialog, play: Play) -> None:
    guard(dialog, limit=20_000)
    play(*[said(None, "Done.")] * 4)
    costs = []
    for pairs in (5, 20, 300):
        a_history(dialog, pairs=pairs, sentences=1)
        compacted(dialog)
        ask(dialog, "And now?")
        with rows_of_messages() as read, CaptureQueriesContext(connection) as queries:
            drive_until_idle(dialog)
        costs.append((len(read), len(queries)))

    # The first turn stores the instructions and the tools.
    _first, short, long = costs
    assert long == short


def test_a_short_turn_asks_the_database_few_times(dialog: Dialog, play: Play) -> None:
    play(*[said(None, "Done.")] * 2)
    ask(dialog, "Hello")
    drive_until_idle(dialog)
    ask(dialog, "And now?")

    with CaptureQueriesContext(connection) as queries:
        drive_until_idle(dialog)

    assert len(queries) <= MOST_STATEMENTS


def test_what_is_changed_after_a_request_was_read_is_sent_all_the_same(dialog: Dialog) -> None:
    ask(dialog, "Hello")
    claim = lease.claim(dialog.pk)
    looked, _state = run.read(dialog.pk)
    assert claim is not None
    assert looked is not None
    Dialog.objects.filter(pk=dialog.pk).update(taskdoc="Count the hedgehogs.", version=F("version") + 1)

    call = begin(claim, looked, attempt=1)

    assert "Count the hedgehogs." in call.request.messages[0].content


def test_without_a_view_all_is_read_as_all_is_sent(dialog: Dialog) -> None:
    said_so_far = a_history(dialog, pairs=5)

    assert [one.pk for one in next_context(dialog_to_drive(dialog.pk)).branch] == [one.pk for one in said_so_far]


def test_what_is_sent_is_the_same_as_of_the_whole_course_which_can_be_had_of_a_part_of_it(dialog: Dialog) -> None:
    a_history(dialog, pairs=20)
    compacted(dialog)
    later(dialog, Role.USER, MessageOrigin.TYPED, "And now?")

    part, whole = both(dialog)

    assert (part.is_whole, whole.is_whole) == (False, True)
    assert len(part.branch) < len(whole.branch)
    assert told(part) == told(whole)
    assert part.whole() == whole.whole()
    assert [piece.content for piece in part.whole().pieces] == [one.content for one in whole.branch]


def undone(dialog: Dialog, run: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(status="undone")


def moved_away(dialog: Dialog, run: CompactionRun) -> None:
    """The person edited a message that the view was made of."""
    branch = course_branch(run.leaf)
    dialog.refresh_from_db()
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Rather this.", parent=branch[20])
    dialog.save()


@pytest.mark.parametrize("happens", [undone, moved_away])
def test_a_view_that_does_not_hold_shows_nothing(
    dialog: Dialog, happens: Callable[[Dialog, CompactionRun], None]
) -> None:
    a_history(dialog, pairs=20)
    happens(dialog, compacted(dialog))

    part, whole = both(dialog)

    assert part == whole
    assert part.run_id is None


def test_after_an_undone_view_the_one_before_it_holds(dialog: Dialog) -> None:
    a_history(dialog, pairs=20)
    first = compacted(dialog)
    later(dialog, Role.USER, MessageOrigin.TYPED, "And now?")
    undone(dialog, compacted(dialog, last=1))
    CompactionRun.objects.exclude(pk=first.pk).update(parent_run=first)

    part, whole = both(dialog)

    assert (part.run_id, part.is_whole) == (first.pk, False)
    assert told(part) == told(whole)


def test_an_answer_that_was_cut_is_gone_on_with_where_the_view_has_left_it_out(dialog: Dialog) -> None:
    a_history(dialog, pairs=20)
    later(dialog, Role.ASSISTANT, MessageOrigin.AGENT, "The first half,")
    later(dialog, Role.USER, MessageOrigin.CONTINUATION, "Go on.")
    later(dialog, Role.ASSISTANT, MessageOrigin.AGENT, " the second half,")
    later(dialog, Role.USER, MessageOrigin.CONTINUATION, "Go on.")
    run = compacted(dialog)
    run.view = [entry for entry in run.view if entry.get("message") not in {one.pk for one in tail(run)}]
    run.save()

    part, whole = both(dialog)

    assert not part.is_whole
    assert told(part) == told(whole)


def tail(run: CompactionRun) -> tuple[Message, ...]:
    return course_branch(run.leaf)[-4:-1]


def test_two_pieces_of_one_answer_are_one_though_the_view_lacks_what_asked_for_the_second(dialog: Dialog) -> None:
    a_history(dialog, pairs=20)
    later(dialog, Role.ASSISTANT, MessageOrigin.AGENT, "The first half,")
    asking = later(dialog, Role.USER, MessageOrigin.CONTINUATION, "Go on.")
    later(dialog, Role.ASSISTANT, MessageOrigin.AGENT, " the second half.")
    run = compacted(dialog)
    run.view = [entry for entry in run.view if entry.get("message") != asking.pk]
    run.save()
    later(dialog, Role.USER, MessageOrigin.TYPED, "And now?")

    part, whole = both(dialog)

    assert not part.is_whole
    assert told(part) == told(whole)
    assert "The first half, the second half." in [one.content for one in chat_request(part).messages]


def test_a_notice_that_the_view_does_not_show_is_not_told_again(dialog: Dialog) -> None:
    """It is known of by all of the course only."""
    history = a_history(dialog, pairs=20)
    for message, notice in ((history[0], "Early."), (history[20], "Late.")):
        course = Course.objects.get(pk=message.course_id)
        RemediationPrompt.objects.create(dialog=dialog, course=course, message=message, level="caution", notice=notice)
    compacted(dialog)

    part, whole = both(dialog)

    assert part == whole
    assert "Early." not in str(told(part))


def test_what_was_pinned_after_the_view_was_made_counts_as_what_must_stay(dialog: Dialog) -> None:
    history = a_history(dialog, pairs=20)
    compacted(dialog)
    MessageMark.objects.create(message=history[10], pinned=True)
    context = next_context(dialog_to_drive(dialog.pk))

    pinned = [unit.id for unit in of_the_floor(context, counter_of(dialog.llm)) if unit.pinned]

    assert pinned == [str(history[10].pk)]
