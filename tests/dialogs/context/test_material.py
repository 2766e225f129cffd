"""What a run begins with: units of the stored messages, and what stays for the run's own sake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.context.estimate import next_context, present_context
from dialogs.context.material import Material, material, of_the_floor, with_unanswered
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import Guard, by_limit
from dialogs.models import Course, Dialog, Message, MessageMark
from dialogs.models.message import INSERTED, MessageOrigin, Role
from dialogs.transcript.model_view import Entry, dump
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.config import ContextConfig
from health.compaction.terms.units import ContextState, Priority
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard, long_text

pytestmark = pytest.mark.django_db(transaction=True)
VIEWING = ("prune_with_agent", "keep_last_five")


def begun(dialog: Dialog, limit: Guard | None = None, **run: object) -> tuple[CompactionRun, Material]:
    queued = queue_run(dialog, guard=limit or by_limit(dialog), trigger="manual", **run)  # type: ignore[arg-type]
    return queued, material(queued, ContextConfig())


def a_view(dialog: Dialog, *entries: Entry) -> CompactionRun:
    """A view that holds for all that was said so far."""
    run = queue_run(dialog, guard=by_limit(dialog), trigger="manual")
    CompactionRun.objects.filter(pk=run.pk).update(status="applied", view=dump(entries))
    Course.objects.filter(pk=run.course_id).update(head_run=run)
    run.refresh_from_db()
    return run


def test_every_message_is_a_unit_under_its_own_id_with_the_marks_of_a_person(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=3)
    MessageMark.objects.create(message=said[1], pinned=True)
    MessageMark.objects.create(message=said[2], priority=1)

    _run, found = begun(dialog)

    by_id = {unit.id: unit for unit in found.state.units}
    assert list(by_id) == [unit.id for unit in found.state.units] == ["system", *(str(one.pk) for one in said)]
    assert all(found.said[str(message.pk)] == message.content for message in said)
    assert by_id[str(said[1].pk)].pinned
    assert by_id[str(said[2].pk)].priority is Priority.P1


@pytest.mark.parametrize(
    ("role", "origin"),
    [*((Role.USER, origin) for origin in INSERTED), (Role.SYSTEM, MessageOrigin.CLIENT)],
    ids=lambda one: str(one),
)
@pytest.mark.parametrize("trigger", ["pre_request", "stream"])
def test_what_is_to_be_answered_next_stays_though_no_person_said_it(
    dialog: Dialog, role: Role, origin: MessageOrigin, trigger: str
) -> None:
    guard(dialog)
    a_history(dialog, pairs=3)
    prompt = add_message(dialog, role=role, origin=origin, content="Go on.", parent=dialog.current_leaf)
    dialog.save()

    found = material(queue_run(dialog, guard=by_limit(dialog), trigger=trigger), ContextConfig())

    assert [unit.pinned for unit in found.state.units if unit.id == str(prompt.pk)] == [True]


def test_all_after_a_chosen_message_stays(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=4)

    _run, found = begun(dialog, up_to=said[3])

    assert [unit.id for unit in found.state.units if unit.pinned] == [str(message.pk) for message in said[4:]]


def test_a_later_run_begins_with_the_originals(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=4)
    a_view(dialog, Entry(content="In short.", kind="summary", covers=(said[0].pk, said[1].pk)))

    _run, found = begun(dialog)

    assert [unit.id for unit in found.state.units][1:] == [str(message.pk) for message in said]


def test_a_run_with_the_pruning_agent_begins_with_the_view_and_its_sources(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=4)
    covered = (said[0].pk, said[1].pk)
    a_view(dialog, Entry(content="In short.", kind="summary", covers=covered), Entry(message_id=said[2].pk))

    _run, found = begun(dialog, replace(by_limit(dialog), chain=VIEWING))

    written = found.state.units[1]
    assert (written.content, written.source_ids) == ("In short.", tuple(map(str, covered)))


def test_what_an_earlier_view_shortened_stays_short_in_the_next(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=16)
    a_view(
        dialog,
        *(Entry(message_id=message.pk) for message in said[:-1]),
        Entry(message_id=said[-1].pk, content="Short."),
    )
    run, _found = begun(dialog, replace(by_limit(dialog), chain=VIEWING))

    perform(run.pk, embedder="static")

    dialog.refresh_from_db()
    assert present_context(dialog).pieces[-1].content == "Short."
    run.refresh_from_db()
    assert run.status == "applied"


def test_an_answer_that_was_cut_stays_whole(dialog: Dialog) -> None:
    guard(dialog)
    cut = a_history(dialog, pairs=3)[-1]
    asking = add_message(
        dialog, role=Role.USER, origin=MessageOrigin.CONTINUATION, content="Go on.", parent=dialog.current_leaf
    )
    run = queue_run(dialog, guard=by_limit(dialog), trigger="stream")

    found = material(run, ContextConfig())

    assert [unit.id for unit in found.state.units if unit.pinned] == [str(cut.pk), str(asking.pk)]


def test_where_an_answer_is_asked_for_again_the_one_before_it_may_go(dialog: Dialog) -> None:
    guard(dialog)
    a_history(dialog, pairs=3)
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="And?", parent=dialog.current_leaf)
    run = queue_run(dialog, guard=by_limit(dialog), trigger="stream")

    assert not [unit for unit in material(run, ContextConfig()).state.units if unit.pinned]


def typed(dialog: Dialog, content: str) -> Message:
    message = add_message(
        dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=content, parent=dialog.current_leaf
    )
    dialog.save()
    return message


@pytest.mark.parametrize(
    ("late", "stays"),
    [
        (["Write the report about WHALES.", "In French, please."], 0),
        ([long_text(number, 32) for number in range(4)], 2),
        (["And this.", long_text(5, 84), "In French, please."], 1),
    ],
    ids=["all", "of more than half of the room the newest", "one up to three quarters of the room"],
)
def test_what_nobody_answered_yet_stays(dialog: Dialog, late: list[str], stays: int) -> None:
    guard(dialog)
    a_history(dialog, pairs=3)
    unanswered = [typed(dialog, text) for text in late]

    _run, found = begun(dialog)

    assert [unit.id for unit in found.state.units if unit.pinned] == [str(unanswered[stays].pk)]


def test_the_floor_of_a_view_knows_what_nobody_answered(dialog: Dialog) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=4)
    whales = typed(dialog, "Write the report about WHALES.")
    a_view(dialog, *(Entry(message_id=one.pk) for one in (said[0], said[2], said[4], whales)))
    typed(dialog, "In French, please.")
    context = next_context(dialog_to_drive(dialog.pk))
    counter = counter_of(dialog.llm)

    floor = with_unanswered(ContextState(units=of_the_floor(context, counter), limit=3500), context)

    assert not context.is_whole
    assert [unit.id for unit in floor.units if unit.pinned] == [str(whales.pk)]
