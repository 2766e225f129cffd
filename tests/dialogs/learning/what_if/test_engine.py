"""One dialog gone through again: the critic's replay, with the engine for every compaction in it."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from dialogs.context.estimate import growth_of
from dialogs.learning import what_if as work
from dialogs.learning.variants import NO_LIMIT, Variant
from dialogs.learning.what_if import ReplayedCourse, read_course, replayed
from dialogs.models import LLM, Dialog, Message, Provider
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from health.critic.replay import Rules, replay
from health.models import CompactionRun, ContextEvent
from tests.builders import a_call
from tests.dialogs.compacting_builders import RULE, a_history, guard, long_text

CHAIN = ("trim_payloads", "select_passages")


def said_by(dialog: Dialog, role: Role, content: str, **fields: Any) -> Message:
    origin = MessageOrigin.TOOL if role is Role.TOOL else MessageOrigin.AGENT
    made = add_message(dialog, role=role, origin=origin, content=content, parent=dialog.current_leaf, **fields)
    dialog.save()
    return made


@pytest.fixture
def course(dialog: Dialog) -> ReplayedCourse:
    """Some 6,000 tokens, said under no limit; the first of it is a rule."""
    guard(dialog, limit=4000)
    a_history(dialog, pairs=24, sentences=4)
    return read_course(dialog_to_drive(dialog.pk))


def test_above_every_context_it_is_the_replay_that_everybody_uses(course: ReplayedCourse) -> None:
    found = replayed(course, Variant(NO_LIMIT, CHAIN))

    assert found.happening == replay([course.growth], Rules(limit=NO_LIMIT))
    assert (found.happening.compactions, found.lost, found.bindings) == (0, 0, 0)


def test_under_a_limit_the_engine_keeps_it_there_says_what_that_costs_and_stores_nothing(
    course: ReplayedCourse, dialog: Dialog
) -> None:
    before = growth_of(dialog_to_drive(dialog.pk), reserve=0)
    whole = replayed(course, Variant(NO_LIMIT, CHAIN))

    found = replayed(course, Variant(3500, CHAIN))

    assert found.happening.requests == whole.happening.requests
    assert found.happening.compactions > 0
    assert found.happening.failures == 0
    assert found.happening.tokens_sent < whole.happening.tokens_sent
    assert found.lost > 0
    # What binds is not lost.
    assert RULE.startswith("Never")
    assert found.bindings == 0
    assert not CompactionRun.objects.exists()
    assert not ContextEvent.objects.exists()
    assert growth_of(dialog_to_drive(dialog.pk), reserve=0) == before


def test_a_higher_limit_compacts_less_and_loses_no_more(course: ReplayedCourse) -> None:
    low, high = (replayed(course, Variant(limit, CHAIN)) for limit in (3500, 5500))

    assert high.happening.compactions < low.happening.compactions
    assert high.lost <= low.lost


def test_the_chain_makes_a_difference(course: ReplayedCourse) -> None:
    ours, last_five = (replayed(course, Variant(3500, chain)) for chain in (CHAIN, ("keep_last_five",)))

    assert ours.happening.tokens_sent != last_five.happening.tokens_sent


def test_after_its_time_the_goal_counts_as_reached(course: ReplayedCourse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_SECONDS", -1.0)

    found = replayed(course, Variant(3500, CHAIN))

    assert found.is_cut_short
    assert found.happening == replay([course.growth], Rules(limit=3500))


def test_what_is_kept_for_the_answer_counts_as_used_and_is_not_sent(dialog: Dialog) -> None:
    a_history(dialog, pairs=24, sentences=4)
    # In so small a room our own tools are not offered.
    LLM.objects.update(tool_calling="off")
    plain = replayed(read_course(dialog_to_drive(dialog.pk)), Variant(NO_LIMIT, CHAIN)).happening
    Provider.objects.update(kind="lmstudio", base_url="http://127.0.0.1:9/v1")
    LLM.objects.update(detected_context_length=8000, context_length=None, compaction="automatic")
    course = read_course(dialog_to_drive(dialog.pk))

    whole, limited = (replayed(course, Variant(limit, CHAIN)).happening for limit in (NO_LIMIT, 5000))

    assert course.growth.reserve == 800
    assert whole.tokens_sent == plain.tokens_sent
    assert limited.compactions > 0
    assert limited.tokens_sent < whole.tokens_sent


def test_a_dialog_is_read_and_counted_once_for_all_that_is_tried(
    course: ReplayedCourse, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = replayed(course, Variant(3500, CHAIN))

    with django_assert_num_queries(0):
        higher, again = (replayed(course, Variant(limit, CHAIN)) for limit in (5500, 3500))

    assert first == again != higher


def test_a_round_of_tools_is_gone_through_result_by_result(dialog: Dialog) -> None:
    guard(dialog, limit=4000)
    a_history(dialog, pairs=12, sentences=8)
    for number in range(6):
        asked = said_by(dialog, Role.ASSISTANT, "")
        calls = [a_call(asked), a_call(asked)]
        for call in calls:
            said_by(dialog, Role.TOOL, long_text(900 + number, 12), parts={"tool_call_id": call.call_id})
    course = read_course(dialog_to_drive(dialog.pk))

    found = replayed(course, Variant(3500, CHAIN))

    assert found.happening.requests == 12 + 12
    assert found.happening.compactions > 0
    assert found.happening.failures == 0


def test_where_more_is_lost_than_is_listed_it_says_so(course: ReplayedCourse, monkeypatch: pytest.MonkeyPatch) -> None:
    some = replayed(course, Variant(3500, CHAIN))
    monkeypatch.setattr(work, "MOST_LOSSES", some.lost)

    assert not some.are_more_lost
    assert replayed(course, Variant(3500, CHAIN)).are_more_lost
