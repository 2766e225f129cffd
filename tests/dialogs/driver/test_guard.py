"""The guard end to end: what is compacted before a request, at a tool's result, in mid-answer; and what never is."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from dialogs.agents.tools.base import OutsideTool
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.driver import guarding
from dialogs.driver.watch import Watch
from dialogs.llms.guard import by_limit
from dialogs.models import Dialog, Generation, Message, MessageMark, Question
from dialogs.turns.writes.messages import answer_question, post_message, retry
from health.compaction.terms.pressure import Pressure, pressure
from health.models import CompactionRun, ContextEvent
from tests.dialogs.compacting_builders import RULE, a_history, estimated, guard, long_text
from tests.dialogs.driver.conftest import (
    Offer,
    Play,
    ask,
    ask_and_drive,
    calling,
    drive_until_idle,
    outside,
    said,
)

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status


def texts(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"]]


def everything(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def reading(*parts: str) -> OutsideTool:
    """A tool that reads a file, part by part."""
    unread = iter(parts)

    async def read(_arguments: Any) -> str:
        return next(unread)

    return outside("read_file", read)


def test_a_context_above_the_threshold_is_compacted_before_it_is_sent(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=20)
    requests = play(said(None, "Done."))
    assert estimated(dialog) > 3500

    ask_and_drive(dialog, "What does the rotor show?")

    run = CompactionRun.objects.get()
    assert (run.status, run.trigger) == (Status.APPLIED, "pre_request")
    assert len(requests()) == 1
    assert estimated(dialog) <= 2800
    assert "What does the rotor show?" in texts(requests()[0])[-1]
    assert "Never deploy on a Friday" in everything(requests()[0])
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


def test_a_context_under_the_threshold_is_sent_as_it_is(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=5)
    requests = play(said(None, "Done."))

    ask_and_drive(dialog)

    assert not CompactionRun.objects.exists()
    assert not ContextEvent.objects.exists()
    assert len(requests()[0]["messages"]) == 12


def test_what_is_marked_gives_way_by_name_where_it_is_more_than_the_limit(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    for message in a_history(dialog, pairs=20):
        MessageMark.objects.create(message=message, pinned=True)
    requests = play(said(None, "Done."))

    ask_and_drive(dialog, "What does the rotor show?")

    run = CompactionRun.objects.get()
    assert run.status == Status.APPLIED
    assert "marked_left_out" in [told["code"] for told in run.warnings]
    assert "What does the rotor show?" in texts(requests()[0])[-1]


@pytest.fixture(params=["with the other marks", "alone"])
def others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone: neither the threshold before a request nor the mark in mid-answer asks for a compaction."""
    if request.param == "alone":

        def only_overflow(tokens: int, **limits: Any) -> Pressure:
            found = pressure(tokens, **limits)
            return found if found is Pressure.OVERFLOW else Pressure.NORMAL

        monkeypatch.setattr(guarding, "pressure", only_overflow)
        monkeypatch.setattr(Watch, "is_at_the_mark", False)


@pytest.mark.usefixtures("others")
def test_a_tools_result_that_would_overflow_is_sent_whole_after_a_compaction(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    guard(dialog)
    a_history(dialog, pairs=10)
    result = long_text(77, sentences=75)
    offer(reading(result))
    requests = play(calling(None, "read_file"), said(None, "Done."))

    ask_and_drive(dialog, "Read the file.")

    run = CompactionRun.objects.get()
    assert (run.status, run.trigger) == (Status.APPLIED, "tool_result")
    before, sent = (request["messages"] for request in requests())
    assert (sent[-1]["tool_call_id"], sent[-1]["content"]) == ("c1", result)
    assert sent[-2]["tool_calls"][0]["id"] == "c1"
    assert len(sent) < len(before)
    assert "Never deploy on a Friday" in everything(requests()[1])
    assert estimated(dialog) <= 3500


def test_results_that_fill_the_context_again_and_again_are_worked_through(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    guard(dialog, limit=4000)
    a_history(dialog, pairs=12)
    parts = [long_text(77 + number, sentences=70) for number in range(4)]
    offer(reading(*parts))
    calls = [calling(None, "read_file", call_id=f"c{number}") for number in range(4)]
    requests = play(*calls, said(None, "I have read all four."))

    ask_and_drive(dialog, "Read the four parts.")

    assert CompactionRun.objects.filter(status=Status.APPLIED).count() >= 2
    assert not Generation.objects.exclude(status="finished").exists()
    assert requests()[-1]["messages"][-1]["content"] == parts[-1]
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "I have read all four."


def test_without_a_limit_a_long_result_is_sent_whole_below_all_that_was_said(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    a_history(dialog, pairs=12)
    result = long_text(77, sentences=250)
    offer(reading(result))
    requests = play(calling(None, "read_file"), said(None, "Done."))

    ask_and_drive(dialog, "Read the file.")

    sent = requests()[1]["messages"]
    assert not CompactionRun.objects.exists()
    assert (len(sent), sent[-1]["content"]) == (1 + 24 + 3, result)


def test_a_result_that_fits_is_sent_whole_though_the_context_is_nearly_full(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    guard(dialog)
    result = long_text(77, sentences=80)
    offer(reading(result))
    requests = play(calling(None, "read_file"), said(None, "Done."))

    ask_and_drive(dialog, f"Read the file. {long_text(3, sentences=72)}")

    assert requests()[1]["messages"][-1]["content"] == result
    assert 0.95 * 3500 < estimated(dialog) <= 3500


def test_a_result_larger_than_the_limit_is_shortened_and_the_agent_goes_on(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    guard(dialog)

    offer(reading(long_text(77, sentences=200)))
    requests = play(calling(None, "read_file"), said(None, "Done."))

    ask_and_drive(dialog, "Read the file.")

    result = requests()[1]["messages"][-1]["content"]
    assert (CompactionRun.objects.get().status, len(requests())) == (Status.APPLIED, 2)
    assert "characters" in result
    assert len(result) < len(long_text(77, sentences=200))
    assert estimated(dialog) <= 3500
    assert Message.objects.get(role="tool").content == long_text(77, sentences=200), "whole in the transcript"


def test_instructions_that_fill_the_limit_are_named_and_no_compaction_is_tried(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    dialog.agent.instructions = long_text(5, sentences=200)
    dialog.agent.save()
    requests = play(said(None, "Done."))

    ask_and_drive(dialog)

    failed = Generation.objects.get()
    assert requests() == []
    assert not CompactionRun.objects.exists()
    assert "system prompt" in failed.error_message
    event = ContextEvent.objects.get(code="TOKEN_LIMIT_EXCEEDED")
    assert (event.agent_id, event.llm_id, event.limit) == (dialog.agent_id, dialog.llm_id, 3500)
    assert event.estimated is not None
    assert event.estimated > 3500
    assert not dialog.is_busy


def test_later_compactions_choose_from_all_that_was_said(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=20)
    requests = play(said(None, long_text(9, sentences=20)))

    for number in range(8):
        ask_and_drive(dialog, f"And {number}? {long_text(number + 40, sentences=8)}")

    runs = CompactionRun.objects.filter(status=Status.APPLIED).order_by("id")
    assert runs.count() >= 3
    assert all(run.estimated_after is not None and run.estimated_after <= 2800 for run in runs)
    assert [run.parent_run_id for run in runs] == [None, *[run.pk for run in runs][:-1]]
    assert all(RULE.split(",")[0] in everything(request) for request in requests())


def test_a_person_who_tries_again_after_it_was_given_up_has_compactions_again(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=20)
    play(said(None, "Done."))
    message = ask(dialog, "What does the rotor show?")
    for _ in range(3):
        CompactionRun.objects.create(
            dialog=dialog,
            course=message.course,
            leaf=message,
            turn=message.turn,
            through_seq=message.seq,
            trigger="pre_request",
            status=Status.FAILED,
            limit_tokens=3500,
        )
    drive_until_idle(dialog)
    assert Generation.objects.get().error_code == "context_compaction_failed"

    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


def test_a_compaction_that_nobody_can_take_up_does_not_keep_the_turn_for_ever(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialogs.driver.run.make_run", lambda _run_id, **_how: None)
    play(said(10, "Here."))
    guard(dialog)
    a_history(dialog, pairs=18)

    ask_and_drive(dialog, "And now?")

    assert dialog.messages.last().content == "Here."
    assert set(CompactionRun.objects.values_list("status", flat=True)) == {"failed"}


def test_where_two_hundred_messages_are_pinned_every_turn_is_answered(dialog: Dialog, play: Play) -> None:
    """A run that gained nothing while the request fitted says nothing of the first one that does not fit."""
    pinned = a_history(dialog, pairs=100)
    MessageMark.objects.bulk_create(MessageMark(message=one, pinned=True) for one in pinned)
    guard(dialog, 3500, 4700)
    requests = play(*(said(None, f"Answer {turn}. {long_text(800 + turn, 2)}") for turn in range(12)))

    for turn in range(12):
        ask_and_drive(dialog, f"Question {turn}: what of the pump? {long_text(1500 + turn, 1)}")
        assert len(requests()) == turn + 1

    assert CompactionRun.objects.filter(status=Status.SKIPPED).count() <= 3


@pytest.mark.parametrize("pairs", [20, 54])
def test_after_a_run_that_freed_all_it_could_none_is_tried_before_the_context_has_grown(
    dialog: Dialog, play: Play, pairs: int
) -> None:
    """Where it would still fit. By a tenth of the limit: until then what is pinned leaves as little to gain."""
    pinned, limit, turns = a_history(dialog, pairs=pairs), 3500, 24
    MessageMark.objects.bulk_create(MessageMark(message=one, pinned=True) for one in pinned)
    guard(dialog, limit, 4700)
    requests = play(*(said(None, f"Answer {turn}. {long_text(800 + turn, 2)}") for turn in range(turns)))

    for turn in range(turns):
        ask_and_drive(dialog, f"Question {turn}: what of the pump? {long_text(1500 + turn, 1)}")

    runs = CompactionRun.objects.order_by("pk").values_list("estimated_before", "estimated_after")
    sizes = [(after, then) for (_before, after), (then, _after) in pairwise(runs) if after and then]
    assert len(requests()) == turns
    assert all(then > limit or then >= after + limit / 10 for after, then in sizes if after > 0.7 * limit)
    assert CompactionRun.objects.filter(status=Status.SKIPPED).count() <= 1


# A history that is compacted while the agent waits for an answer: that is the result of its call all the same.


def in_the_box(dialog: Dialog) -> None:
    answer_question(dialog=dialog, question_id=Question.objects.get().pk, answer="Blue")


def with_a_message(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Blue")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("answer", [in_the_box, with_a_message])
def test_the_agent_goes_on(dialog: Dialog, play: Play, answer: Callable[[Dialog], None], times: int) -> None:
    guard(dialog)
    a_history(dialog, pairs=12)
    requests = play(calling(10, "ask_human", '{"question": "Red or blue?"}'), said(10, "Blue it is."))
    ask_and_drive(dialog, "Paint the fence.")
    for _time in range(times):
        run = queue_run(dialog, guard=by_limit(dialog), trigger="manual", requested_by=dialog.owner)
        perform(run.pk, embedder="static")

    answer(dialog)
    drive_until_idle(dialog)

    assert CompactionRun.objects.filter(status="applied").exists()
    assert dialog.paused_by == ""
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Blue it is."
    assert "Blue" in str(requests()[-1]["messages"])
