"""An answer that fills the window is cut, the context compacted, and the same sentence goes on. One that says nothing
is asked for again, and what still does not end is ended with both numbers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from dialogs.compaction.writes.view_changes import undo
from dialogs.context import estimate as sizes
from dialogs.context.border import chat_request, read_context
from dialogs.driver.calls import request_to_go_on
from dialogs.driver.prefill import find_out
from dialogs.llms.counter import counter_of
from dialogs.llms.reads import settings_for
from dialogs.models import LLM, Agent, Course, Dialog, Generation, Message, Question
from dialogs.models.agent import WhenFull
from dialogs.models.llm import Prefill
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ChatMessage
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import retry
from health.compaction.terms.ports import Counter
from health.models import CompactionRun, ContextEvent
from tests.dialogs.compacting_builders import a_history, estimated, guard, long_text
from tests.dialogs.driver.conftest import Play, a_call, ask, ask_and_drive, drive_until_idle, said
from tests.dialogs.driver.test_guard import everything, texts
from tests.standins.real import real_llm

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status
WINDOW = 4000
GO_ON = "Go on exactly where your last message stops"
# What a model answers that goes on with an answer which ends the request.
TRIED = ({"match": "Which days", "text": "day, Thursday"}, {"match": "Name the days", "text": " Wednesday"})
STARTS_ANEW = ({"match": "Which days", "text": "Monday, Tuesday"},)


def words(number: int, sentences: int) -> list[str]:
    """A long answer as a model sends it: in words, each with the space before it."""
    first, *rest = long_text(number, sentences).split()
    return [first, *(f" {word}" for word in rest)]


def answers(dialog: Dialog) -> list[str]:
    """The pieces of the newest answer."""
    assert dialog.current_leaf is not None
    pieces = Message.objects.filter(dialog=dialog, turn=dialog.current_leaf.turn, role="assistant")
    return list(pieces.values_list("content", flat=True))


def asked(requests: Any) -> list[dict[str, Any]]:
    """The requests for answers, without those by which the model is tried."""
    return [request for request in requests() if "days" not in request["messages"][0]["content"]]


def tokens_of(dialog: Dialog, text: str) -> int:
    return counter_of(dialog.llm).count([text])[0]


def test_an_answer_that_fills_the_window_is_cut_compacted_and_gone_on_with(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=10)
    requests = play(*STARTS_ANEW, {"text": words(3, 90)}, said(None, "and that is all."))

    ask_and_drive(dialog, "Tell me everything.")

    run = CompactionRun.objects.get()
    partial = Message.objects.get(cut_short=True)
    second = asked(requests)[1]
    assert (run.status, run.trigger) == (Status.APPLIED, "stream")
    assert "".join(words(3, 90)).startswith(partial.content)
    assert texts(second)[-2].endswith(partial.content[-200:])
    assert texts(second)[-1].startswith(GO_ON)
    assert len(everything(second)) < len(everything(asked(requests)[0])) + len(partial.content)
    assert answers(dialog) == [partial.content, " and that is all."]
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.turn == partial.turn
    assert not dialog.is_busy


def test_where_answers_come_in_no_counter_is_made_and_no_prompt_estimated(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: set[str] = set()

    def noted(llm: LLM) -> Counter:
        try:
            asyncio.get_running_loop()
            where.add("loop")
        except RuntimeError:
            where.add("thread")
        return counter_of(llm)

    monkeypatch.setattr(sizes, "counter_of", noted)
    guard(dialog, window=WINDOW)
    play(*STARTS_ANEW, {"text": words(3, 300)}, said(None, "and that is all."))

    ask_and_drive(dialog, "Tell me everything.")

    assert Message.objects.filter(cut_short=True).exists()
    assert where == {"thread"}


def test_a_notice_on_what_was_typed_and_a_cut_answer_stand_in_one_request(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    Agent.objects.update(when_full=WhenFull.REMIND)
    a_history(dialog, pairs=10)
    Course.objects.filter(dialog=dialog).update(level="critical", due="critical", countdown_turns=5)
    requests = play(*STARTS_ANEW, {"text": words(3, 90)}, said(None, "and that is all."))

    ask_and_drive(dialog, "Tell me everything.")

    first, second = asked(requests)
    partial = Message.objects.get(cut_short=True)
    notice = texts(first)[-1].removeprefix("Tell me everything.")
    before, cut, going_on = texts(second)[-3:]
    assert "The context is nearly full (critical;" in notice
    assert before.endswith(f"Tell me everything.{notice}")
    assert cut == partial.content
    assert going_on.startswith(GO_ON)
    assert "".join(texts(second)).count(notice) == 1
    assert answers(dialog) == [partial.content, " and that is all."]
    assert dialog.paused_by == ""


def test_it_is_cut_at_nine_tenths_of_the_window_at_the_end_of_a_sentence_where_one_is_near(
    dialog: Dialog, play: Play
) -> None:
    """Later requests hold the two pieces as one answer."""
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=6)
    requests = play(*STARTS_ANEW, {"text": words(3, 120)}, said(None, "and that is all."), said(None, "Fine."))

    ask(dialog, "Tell me everything.")
    before = estimated(dialog)
    drive_until_idle(dialog)

    partial = Message.objects.get(cut_short=True)
    filled = before + tokens_of(dialog, partial.content)
    assert 0.9 * WINDOW - 10 <= filled <= 0.92 * WINDOW + 10
    assert partial.content.endswith(".")

    ask_and_drive(dialog, "Thanks.")
    last = asked(requests)[-1]
    assert GO_ON not in everything(last)
    assert [message["role"] for message in last["messages"]][-3:] == ["user", "assistant", "user"]
    assert texts(last)[-2].endswith(". and that is all.")


@pytest.mark.parametrize("window", [100_000, None])
def test_a_limit_below_the_window_or_one_that_is_unknown_cuts_no_answer(
    dialog: Dialog, play: Play, window: int | None
) -> None:
    guard(dialog, limit=3500, window=window)
    a_history(dialog, pairs=4)
    play({"text": words(3, 300)}, said(None, "Fine."))

    ask_and_drive(dialog, "Tell me everything.")
    assert answers(dialog) == ["".join(words(3, 300))]
    assert not CompactionRun.objects.exists()

    ask_and_drive(dialog, "And now?")
    assert CompactionRun.objects.get().trigger == "pre_request"


def test_a_model_that_can_goes_on_by_itself(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=10)
    whole = "".join(words(3, 90))
    requests = play(*TRIED, {"text": words(3, 90)}, {"text": [" of it", " all."]}, continues=True)

    ask_and_drive(dialog, "Tell me everything.")

    dialog.llm.refresh_from_db()
    partial, rest = answers(dialog)
    sent = asked(requests)[1]
    assert dialog.llm.prefill == Prefill.CONTINUES
    assert sent["messages"][-1]["role"] == "assistant"
    assert sent["messages"][-1]["content"].endswith(partial[-200:])
    assert sent["continues"]
    assert GO_ON not in everything(sent)
    assert (partial + rest)[len(partial) :] == " of it all."
    assert whole.startswith(partial)


def test_a_model_is_tried_once(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=10)
    steps = ({"text": words(3, 90)}, said(None, "Done."), {"text": words(4, 90)}, said(None, "Done."))
    requests = play(*STARTS_ANEW, *steps)

    for question in ("Tell me everything.", "And the rest."):
        ask_and_drive(dialog, question)

    dialog.llm.refresh_from_db()
    assert dialog.llm.prefill == Prefill.REFUSED
    assert len(requests()) - len(asked(requests)) == 1
    assert Message.objects.filter(origin=MessageOrigin.CONTINUATION).count() == 2


def test_a_model_that_refuses_later_is_asked_in_words(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    dialog.llm.prefill = Prefill.CONTINUES
    dialog.llm.save()
    a_history(dialog, pairs=10)
    requests = play({"text": words(3, 90)}, said(None, "and that is all."))

    ask_and_drive(dialog, "Tell me everything.")

    dialog.llm.refresh_from_db()
    assert dialog.llm.prefill == Prefill.REFUSED
    assert texts(requests()[-1])[-1].startswith(GO_ON)
    assert answers(dialog)[-1] == " and that is all."
    assert not dialog.is_busy


def test_what_the_model_repeats_is_told_once(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=10)
    play(*STARTS_ANEW, {"text": words(3, 90)}, {"text": ["units", " after", " the", " check,", " as"]})
    ask_and_drive(dialog, "Tell me everything.")
    partial = answers(dialog)[0]

    last = partial.split()[-4:]
    play(*STARTS_ANEW, {"text": [f"{word} " for word in [*last, "and", "done."]]})
    Message.objects.filter(pk=dialog.current_leaf_id).delete()  # type: ignore[misc]
    dialog.refresh_from_db()
    asking = Message.objects.filter(origin=MessageOrigin.CONTINUATION).latest("seq")
    Dialog.objects.filter(pk=dialog.pk).update(current_leaf=asking)
    dialog.refresh_from_db()
    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert answers(dialog)[-1] == " and done. "


def test_an_answer_without_end_is_restarted_three_times_and_ended_with_both_numbers(dialog: Dialog, play: Play) -> None:
    """The next request is compacted first."""
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=8)
    requests = play(*STARTS_ANEW, *({"text": words(number, 400)} for number in range(4)), said(None, "Fine."))

    ask_and_drive(dialog, "Tell me everything.")

    last = Generation.objects.latest("id")
    event = ContextEvent.objects.get(code="TOKEN_LIMIT_EXCEEDED")
    assert CompactionRun.objects.filter(trigger="stream", status=Status.APPLIED).count() == 3
    assert len(asked(requests)) == 4
    assert last.finish_reason == "length"
    assert last.message is not None
    assert last.message.content
    assert f"of {WINDOW:,} tokens" in last.error_message
    assert (event.limit, event.estimated >= WINDOW) == (WINDOW, True)  # type: ignore[operator]
    assert not dialog.is_busy

    ask_and_drive(dialog, "And now?")
    assert CompactionRun.objects.latest("id").trigger == "pre_request"
    assert answers(dialog) == ["Fine."]


def test_thoughts_that_fill_the_window_are_dropped_and_the_answer_asked_for_again(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=8)
    requests = play({"reasoning": words(3, 200), "text": "Never said."}, said(None, "The answer."))

    ask_and_drive(dialog, "Think hard.")

    run = CompactionRun.objects.get()
    assert (run.status, run.trigger) == (Status.APPLIED, "stream")
    assert answers(dialog) == ["The answer."]
    assert len(everything(requests()[1])) < len(everything(requests()[0]))
    assert texts(requests()[1])[-1].endswith("Think hard.")


@pytest.mark.parametrize("pairs", [1, 8])
def test_nobody_gets_an_empty_answer_however_long_the_model_thinks(dialog: Dialog, play: Play, pairs: int) -> None:
    """To a next message neither; a person who tries again begins with a compaction, where there is a history."""
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=pairs)
    requests = play({"reasoning": words(3, 400), "text": "Never said."})
    for question in ("Think hard.", "And now?"):
        before = len(requests())

        ask_and_drive(dialog, question)

        last = Generation.objects.latest("id")
        assert len(requests()) - before <= 4
        assert (last.status, last.error_code) == ("failed", "context_filled")
        assert f"of {WINDOW:,} tokens" in last.error_message
        assert not Message.objects.filter(dialog=dialog, role="assistant", content="").exists()
        assert not dialog.is_busy

    runs = CompactionRun.objects.count()
    play(said(None, "The answer."))
    retry(dialog=dialog)
    drive_until_idle(dialog)
    assert CompactionRun.objects.count() >= runs + (pairs > 1)
    assert answers(dialog) == ["The answer."]


def test_a_call_whose_arguments_fill_the_window_is_dropped_and_the_answer_asked_for_again(
    dialog: Dialog, play: Play
) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=8)
    arguments = json.dumps({"content": long_text(3, 200)})
    requests = play(
        {"text": "", "tool_calls": [a_call("add_reminder", arguments)], "finish": "tool_calls"}, said(None, "Done.")
    )

    ask_and_drive(dialog, "Note all of it.")

    run = CompactionRun.objects.get()
    assert (run.status, run.trigger) == (Status.APPLIED, "stream")
    assert not dialog.reminders.exists()
    assert answers(dialog) == ["Done."]
    assert len(requests()) == 2


def test_a_call_that_is_whole_is_made_however_full_the_window_is(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=4)
    arguments = json.dumps({"question": "Which one?"})
    ask(dialog, "Note it.")
    before, said_first = estimated(dialog), words(3, 200)
    while before + tokens_of(dialog, "".join(said_first)) > 0.89 * WINDOW:
        del said_first[-20:]
    play(
        {"text": said_first, "tool_calls": [a_call("ask_human", arguments)], "finish": "tool_calls"},
        said(None, "Done."),
    )

    drive_until_idle(dialog)

    assert Question.objects.get().text == "Which one?"


def test_after_an_undo_a_long_answer_is_cut_and_gone_on_with_all_the_same(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    a_history(dialog, pairs=16)
    play(said(None, "Done."))
    ask_and_drive(dialog, "What does the rotor show?")
    run = CompactionRun.objects.get()
    undo(dialog=dialog, run_id=run.pk, by=dialog.owner)

    play(*STARTS_ANEW, {"text": words(3, 60)}, said(None, "and that is all."))
    dialog.refresh_from_db()
    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert CompactionRun.objects.latest("id").trigger == "stream"
    assert answers(dialog)[-1] == " and that is all."


def test_an_answer_is_not_cut_where_compaction_would_leave_it_no_room(dialog: Dialog, play: Play) -> None:
    guard(dialog, window=WINDOW)
    dialog.agent.instructions = long_text(5, sentences=142)
    dialog.agent.save()
    play({"text": words(3, 400)})

    ask(dialog, "Tell me everything.")
    assert 0.7 * WINDOW < estimated(dialog) < 0.85 * WINDOW
    drive_until_idle(dialog)

    assert not CompactionRun.objects.filter(trigger="stream").exists()
    assert Generation.objects.latest("id").finish_reason == "length"


def test_the_demo_model_goes_on_with_its_own_sentence(dialog: Dialog) -> None:
    """llama.cpp's own server with real weights: it is sent what it had said, and nobody's words after it."""
    begun = "The sea is a vast body of water that covers more than seventy percent of the"
    ask(dialog, "Tell me about the sea in one sentence.")
    with real_llm(context=1000) as url:
        serve(dialog, "llamacpp", url)
        async_to_sync(find_out)(dialog.llm, settings_for(dialog.llm.provider))
        assert dialog.llm.prefill == Prefill.CONTINUES
        partial = cut_at(dialog, begun)
        drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    rest = dialog.current_leaf.content
    assert Generation.objects.latest("id").manifest["messages"][-1] == partial.pk
    assert rest.startswith(" ")
    assert "The sea is" not in rest


@pytest.mark.parametrize("prefill", [Prefill.CONTINUES, Prefill.REFUSED, ""])
def test_only_a_model_that_goes_on_by_itself_is_sent_an_answer_to_go_on_with(dialog: Dialog, prefill: str) -> None:
    """A refusal of one that is known to refuse is told; asked again at once it would be refused without end."""
    LLM.objects.update(prefill=prefill)
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Name the days.", parent=None)
    partial = cut_at(dialog, "Monday, Tuesday, ")
    row = dialog_to_drive(dialog.pk)
    context = read_context(row, course_branch(row.current_leaf))
    ending = replace(chat_request(context), messages=(ChatMessage(role="assistant", content=partial.content),))

    assert request_to_go_on(context, ending).continues is (prefill == Prefill.CONTINUES)


def serve(dialog: Dialog, kind: str, url: str) -> None:
    provider, llm = dialog.llm.provider, dialog.llm
    provider.kind, provider.base_url = kind, url
    provider.save()
    llm.model_id, llm.tool_calling, llm.context_length = "smollm2-135m", "off", 1000
    llm.save()
    dialog.agent.max_output_tokens = 60
    dialog.agent.save()


def cut_at(dialog: Dialog, begun: str) -> Message:
    """As if the due answer had been cut here."""
    fields = {"role": Role.ASSISTANT, "origin": MessageOrigin.AGENT, "cut_short": True}
    partial = add_message(dialog, content=begun, parent=dialog.current_leaf, **fields)  # type: ignore[arg-type]
    asking = prompt("continuation", language="en")
    add_message(dialog, role=Role.USER, origin=MessageOrigin.CONTINUATION, content=asking, parent=partial)
    dialog.save()
    return partial
