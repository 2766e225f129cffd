"""Rounds of tool calls: what is run, refused, withheld or waits, and that every call gets its result in order."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from dialogs.agents.tools.base import DialogTool, OutsideTool, Tool, ToolError, schema, wire
from dialogs.agents.tools.memory import ASK, recall
from dialogs.agents.tools.registry import IN_LARGE_ROOMS, own_tools
from dialogs.context.carry_over import OPENING
from dialogs.driver import run_tools
from dialogs.driver.generate import generate
from dialogs.driver.run import drive, policy
from dialogs.driver.writes.courses import start_course
from dialogs.llms.guard import guard_of
from dialogs.models import (
    LLM,
    Agent,
    Course,
    Dialog,
    Generation,
    Message,
    Question,
    RemediationPrompt,
    Reminder,
    ToolCall,
)
from dialogs.models.message import MessageOrigin
from dialogs.pages.writes import set_own_tools
from dialogs.transcript.reads.autonomous import rest_reason
from dialogs.transcript.reads.tool_calls import ASK_HUMAN
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.state import Policy
from dialogs.turns.writes import lease
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import answer_question, go_on, post_message, request_stop, retry
from health.tokens.counters import count_text
from health.tokens.messages import tools_tokens
from tests.dialogs.compacting_builders import a_history, guard, long_text
from tests.dialogs.driver.conftest import (
    Offer,
    Play,
    a_call,
    ask,
    ask_and_drive,
    calling,
    drive_until_idle,
    outside,
    said,
)
from tests.standins.templates import rendered

pytestmark = pytest.mark.django_db(transaction=True)

HEALTHY = said(10, "Done.")
CRITICAL = said(920, "Noted.")


def round_of(*calls: dict[str, str], prompt_tokens: int = 10) -> dict[str, Any]:
    """An answer that makes several calls at once."""
    return said(prompt_tokens, "", tool_calls=list(calls), finish="tool_calls")


def results(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in request["messages"] if m["role"] == "tool"]


def statuses() -> list[tuple[str, str]]:
    return list(ToolCall.objects.values_list("name", "status"))


def test_a_call_is_made_and_its_result_goes_back(dialog: Dialog, play: Play) -> None:
    requests = play(calling(10, "add_reminder", '{"content": "Port 8080"}'), HEALTHY)

    ask_and_drive(dialog)

    assert Reminder.objects.get().content == "Port 8080"
    assert results(requests()[1]) == [("c1", "Reminder 1 is added.")]
    assert [m["role"] for m in requests()[1]["messages"]] == ["system", "user", "assistant", "tool"]
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


SMALL, LARGE = 4_096, 16_384
OURS = {tool.name for tool in (*IN_LARGE_ROOMS, ASK)}


@pytest.mark.parametrize(
    ("window", "compaction", "own", "offered"),
    [
        (SMALL, "automatic", "automatic", {"ask_human"}),
        (LARGE, "automatic", "automatic", OURS),
        # Who wants all of them has them, and where compaction is off those that help then stay.
        (SMALL, "automatic", "on", OURS),
        (SMALL, "off", "automatic", OURS),
    ],
)
def test_tools_of_ours_cost_at_most_a_twentieth_of_a_window_in_which_compaction_makes_room(
    dialog: Dialog, play: Play, window: int, compaction: str, own: str, offered: set[str]
) -> None:
    guard(dialog, window, window)
    LLM.objects.update(compaction=compaction)
    set_own_tools(dialog=dialog, own_tools=own)
    dialog.refresh_from_db()
    requests = play(HEALTHY)

    ask_and_drive(dialog)

    tools = requests()[0]["tools"]
    assert {tool["function"]["name"] for tool in tools} == offered
    assert (compaction, own) != ("automatic", "automatic") or len(json.dumps(tools)) / 4 <= 0.05 * window


MODELS = {
    "gpt-4o": "",
    "qwen2.5-7b": "qwen-2.5",
    "qwen3.5-4b": "qwen-3.5",
    "mistral-7b-instruct": "",
    "mistral-nemo": "mistral-nemo-2407",
    "llama-2-7b": "",
    "llama-3.1-8b": "",
}


@pytest.mark.parametrize("model", MODELS)
def test_however_a_template_writes_our_schemas_they_cost_at_most_a_twentieth_of_the_room(
    dialog: Dialog, model: str
) -> None:
    """With an earlier course, so that all of them may be offered. One alone may be more."""
    a_history(dialog, pairs=1)
    start_course(dialog=dialog)
    LLM.objects.update(model_id=model, compaction="automatic")
    for window, compacted in product((4_096, 8_192, 12_288, 16_384, 20_480, 32_768), (False, True)):
        LLM.objects.update(context_length=window)
        fresh = dialog_to_drive(dialog.pk)
        known = guard_of(fresh)

        tools = own_tools(fresh, compacted=compacted)

        assert known is not None
        assert len(tools) == 1 or _tokens_of(tools, model) <= 0.05 * known.room, (window, compacted)
        assert (recall in tools) == compacted


def _tokens_of(tools: Sequence[Tool], model: str) -> int:
    """By the model's published template, where it is at hand."""
    wired = [wire(tool) for tool in tools]
    if not MODELS[model]:
        return tools_tokens(model, wired)
    prompts = [rendered(MODELS[model], [{"role": "user", "content": "Go on."}], offered) for offered in (wired, ())]
    with_tools, without = (count_text(prompt, model) for prompt in prompts)
    return with_tools - without


def test_where_they_are_switched_off_no_tool_of_ours_is_offered_and_nobody_is_asked_to_use_one(
    dialog: Dialog, play: Play
) -> None:
    guard(dialog, 100_000, 1_000_000)
    requests = play(calling(10, "add_reminder", '{"content": "Port 8080"}'), HEALTHY, said(950_000), HEALTHY)
    ask_and_drive(dialog)

    set_own_tools(dialog=dialog, own_tools="off")
    for _turn in range(2):
        ask_and_drive(dialog)

    last = requests()[-1]
    assert not last.get("tools")
    assert all(not message.get("tool_calls") for message in last["messages"]), "no call without the tool for it"
    assert "Port 8080" in str(last["messages"])
    assert not RemediationPrompt.objects.exists()


def test_where_they_are_switched_off_a_run_ends_by_its_last_line(dialog: Dialog, play: Play) -> None:
    set_own_tools(dialog=dialog, own_tools="off")
    dialog.refresh_from_db()
    requests = play(HEALTHY, said(10, "Painted.\nGOAL DONE"))
    ask_and_drive(dialog)

    start_run(dialog=dialog, goal="Paint it.", max_generations=3)
    drive_until_idle(dialog)

    assert "GOAL DONE" in requests()[1]["messages"][-1]["content"]
    assert len(requests()) == 2


def test_in_a_small_window_an_agent_that_works_by_itself_may_write_reminders(dialog: Dialog, play: Play) -> None:
    guard(dialog, SMALL, SMALL)
    requests = play(HEALTHY, calling(10, "goal_done", '{"summary": "Done."}'), HEALTHY)

    ask_and_drive(dialog)
    start_run(dialog=dialog, goal="Paint it.", max_generations=3)
    drive_until_idle(dialog)

    assert {tool["function"]["name"] for tool in requests()[1]["tools"]} == {*OURS, "goal_done"}


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("no_such_tool", "{}", "There is no tool called 'no_such_tool'"),
        ("add_reminder", '{"content": ', "not valid JSON"),
        ("add_reminder", "[]", "not a JSON object"),
        ("add_reminder", "{}", "'content' is a required property"),
        ("add_reminder", '{"content": 5}', "is not of type 'string'"),
        ("add_reminder", '{"content": "x", "extra": 1}', "Additional properties"),
        ("update_reminder", '{"number": 9, "content": "x"}', "There is no reminder 9"),
        ("goal_done", '{"summary": "x"}', "There is no tool called 'goal_done'"),
        # All that is wrong at once.
        (
            "update_reminder",
            '{"number": "one", "text": 5}',
            "'content' is a required property; 'one' is not of type; 'text' was unexpected",
        ),
    ],
)
def test_what_is_wrong_with_a_call_is_told_to_the_model(
    dialog: Dialog, play: Play, name: str, arguments: str, words: str
) -> None:
    requests = play(calling(10, name, arguments), HEALTHY)

    ask_and_drive(dialog)

    told = results(requests()[1])[0][1]
    assert [wrong for wrong in words.split("; ") if wrong not in told] == []
    assert statuses() == [(name, "failed")]


def test_a_course_that_is_not_there_cannot_be_read(dialog: Dialog, play: Play) -> None:
    requests = play(calling(10, "clear_mind"), calling(10, "read_course", '{"course": 4}', "c2"), HEALTHY)

    ask_and_drive(dialog)

    assert "There is no such course" in results(requests()[2])[0][1]


def test_ids_that_are_missing_or_doubled_are_replaced(dialog: Dialog, play: Play) -> None:
    requests = play(
        round_of(a_call("x", call_id=""), a_call("y", call_id="same"), a_call("z", call_id="same")), HEALTHY
    )

    ask_and_drive(dialog)

    ids = [call_id for call_id, _content in results(requests()[1])]
    assert len(set(ids)) == 3
    assert "same" in ids


def test_a_tool_that_raises_is_a_failed_call_only(
    dialog: Dialog, play: Play, offer: Offer, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(_arguments: Any) -> str:
        raise RuntimeError("secret details")

    offer(outside("fragile", break_down))
    requests = play(calling(10, "fragile"), HEALTHY)

    ask_and_drive(dialog)

    assert "failed inside Dominds" in results(requests()[1])[0][1]
    assert "secret" not in str(requests())
    assert "fragile" in caplog.text


def test_what_a_failing_tool_had_begun_to_write_is_undone(dialog: Dialog, play: Play, offer: Offer) -> None:
    def half(row: Dialog, _arguments: Any) -> str:
        Reminder.objects.create(dialog=row, number=1, position=1, content="half", author="agent")
        raise ToolError("No.")

    offer(DialogTool(name="half", description="", parameters=schema(), perform=half))
    play(calling(10, "half"), HEALTHY)

    ask_and_drive(dialog)

    assert (statuses(), Reminder.objects.count()) == ([("half", "failed")], 0)


def test_a_tool_that_hangs_is_given_up(dialog: Dialog, play: Play, offer: Offer) -> None:
    async def hang(_arguments: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    offer(outside("slow", hang, timeout_seconds=0.2))
    requests = play(calling(10, "slow"), HEALTHY)

    ask_and_drive(dialog)

    assert results(requests()[1]) == [("c1", "The tool did not answer within 0.2 s.")]


@pytest.mark.parametrize("parallel", [True, False])
def test_only_what_is_declared_safe_runs_side_by_side(dialog: Dialog, play: Play, offer: Offer, parallel: bool) -> None:
    at_once, most = 0, 0

    async def work(_arguments: Any) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.2)
        at_once -= 1
        return "ok"

    offer(outside("work", work, parallel=parallel))
    play(round_of(*(a_call("work", call_id=f"c{n}") for n in range(3))), HEALTHY)

    ask_and_drive(dialog)

    assert most == (3 if parallel else 1)


def test_results_keep_the_calls_order_however_they_finish(dialog: Dialog, play: Play, offer: Offer) -> None:
    async def slow(_arguments: Any) -> str:
        await asyncio.sleep(0.2)
        return "slow"

    async def quick(_arguments: Any) -> str:
        return "quick"

    offer(outside("slow", slow, parallel=True), outside("quick", quick, parallel=True))
    requests = play(round_of(a_call("slow", call_id="a"), a_call("quick", call_id="b")), HEALTHY)

    ask_and_drive(dialog)

    assert results(requests()[1]) == [("a", "slow"), ("b", "quick")]


def test_an_agent_that_only_calls_tools_is_told_then_stopped_and_can_be_gone_on_with(
    dialog: Dialog, play: Play, settings: Any
) -> None:
    settings.DOMINDS_MAX_TOOL_ROUNDS = 3
    requests = play(*[calling(10, "add_reminder", '{"content": "again"}')] * 4, HEALTHY)

    ask_and_drive(dialog)

    assert len(requests()) == 4
    assert "too many rounds" in results(requests()[3])[-1][1]
    assert (rest_reason(dialog), dialog.paused_by, dialog.answer_due) == ("rounds", "rounds", False)
    assert Reminder.objects.count() == 2

    go_on(dialog=dialog)
    drive_until_idle(dialog)

    assert (rest_reason(dialog), len(requests())) == ("", 5)
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([("add_reminder", '{"content": ')], "not valid JSON"),
        ([("add_reminder", '{"content": 5}'), ("add_reminder", "{}")], "do not fit"),
        ([("teleport", "{}")], "There is no tool called 'teleport'. There are: "),
        ([(f"teleport_{number}", "{}") for number in range(9)], "There are: "),  # a new name each time
    ],
)
def test_an_agent_whose_calls_cannot_be_made_is_told_so_and_stopped_at_the_fourth(
    dialog: Dialog, play: Play, calls: list[tuple[str, str]], told: str
) -> None:
    requests = play(*[calling(10, name, arguments) for _ in range(5) for name, arguments in calls])

    ask_and_drive(dialog)

    assert len(requests()) == 4
    last = results(requests()[3])[-1][1]
    assert told in last
    assert "answer the person in words" in last
    assert (dialog.paused_by, dialog.answer_due, rest_reason(dialog)) == ("rounds", False, "rounds")


def test_the_page_names_the_call_and_the_agent_goes_on_when_a_person_says_so(
    as_alice: Client, dialog: Dialog, play: Play
) -> None:
    requests = play(*[calling(10, "teleport")] * 4, HEALTHY)
    ask_and_drive(dialog)
    # To what looks for loops equal refusals are equal.
    assert len({told for _id, told in results(requests()[3])}) == 1
    assert "the last was of teleport" in as_alice.get(f"/dialogs/{dialog.pk}/").content.decode()

    go_on(dialog=dialog)
    drive_until_idle(dialog)

    assert (rest_reason(dialog), dialog.current_leaf and dialog.current_leaf.content) == ("", "Done.")


NO_JSON, RIGHT = calling(10, "add_reminder", "{"), calling(10, "update_taskdoc", '{"content": "x"}')
MISSING, UNKNOWN = calling(10, "add_reminder", "{}"), calling(10, "remind")
BOTH = round_of(a_call("add_reminder", "{", "a"), a_call("update_taskdoc", '{"content": "x"}', "b"))


@pytest.mark.parametrize(
    ("steps", "paused_by", "asked"),
    [
        ([UNKNOWN, UNKNOWN, NO_JSON, calling(10, "add_reminder", "[]"), MISSING, RIGHT], "", 7),
        ([NO_JSON, NO_JSON, RIGHT, NO_JSON, NO_JSON, BOTH, NO_JSON, NO_JSON, NO_JSON], "", 10),
        ([UNKNOWN, MISSING] * 9, "rounds", 5),
    ],
    ids=["corrects-itself-step-by-step", "calls-rightly-in-between", "falls-back-again-and-again"],
)
def test_only_an_agent_that_does_not_get_on_is_stopped(
    dialog: Dialog, play: Play, steps: list[dict[str, Any]], paused_by: str, asked: int
) -> None:
    requests = play(*steps, HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.paused_by, len(requests())) == (paused_by, asked)


def test_a_tool_that_did_not_exist_at_first_may_be_called_once_it_does(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter(range(99))
    late = outside("late", lambda _arguments: asyncio.sleep(0, "ok"))
    monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: (late,) if next(asked) > 1 else ())
    requests = play(*[calling(10, "late")] * 8, HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.paused_by, len(requests())) == ("", 9)


@pytest.mark.parametrize("course", ["in one course", "through new courses"])
def test_an_agent_that_goes_on_through_prompts_and_courses_is_stopped(
    dialog: Dialog, play: Play, settings: Any, course: str
) -> None:
    most = settings.DOMINDS_MAX_TOOL_ROUNDS = 4
    full, roomy = calling(920, "update_taskdoc", '{"content": "x"}'), calling(10, "update_taskdoc", '{"content": "x"}')
    requests = play(*[roomy, *[full] * 6] * 10) if course == "through new courses" else play(roomy)
    ask_and_drive(dialog)

    assert dialog.paused_by == "rounds"
    assert (dialog.courses.count() > 1) == (course == "through new courses")
    assert most + 1 <= len(requests()) <= most + 2 * Policy().prompts + 1


def test_what_a_person_says_counts_rounds_anew(dialog: Dialog, play: Play, settings: Any) -> None:
    settings.DOMINDS_MAX_TOOL_ROUNDS = 2
    requests = play(*[calling(10, "update_taskdoc", '{"content": "x"}'), HEALTHY] * 4)
    for _ in range(4):
        ask_and_drive(dialog)

    assert (dialog.paused_by, len(requests())) == ("", 8)


def test_a_question_makes_the_dialog_wait_without_a_worker_and_a_typed_message_answers_it_too(
    dialog: Dialog, play: Play
) -> None:
    requests = play(calling(10, ASK_HUMAN, '{"question": "Red or blue?", "choices": ["red", "blue"]}'), HEALTHY)
    ask_and_drive(dialog)

    question = Question.objects.get()
    assert (question.text, question.choices, question.status) == ("Red or blue?", ["red", "blue"], "pending")
    assert (dialog.is_busy, dialog.answer_due, dialog.lease_until, len(requests())) == (False, True, None, 1)

    ask_and_drive(dialog, "Neither: green.")

    assert [m["role"] for m in requests()[1]["messages"]][-2:] == ["tool", "user"]
    assert requests()[1]["messages"][-1]["content"] == "Neither: green."
    assert Question.objects.get().status == "answered"


def test_the_other_calls_of_the_round_are_made_before_the_dialog_waits(dialog: Dialog, play: Play) -> None:
    reminder = a_call("add_reminder", '{"content": "x"}', "b")
    requests = play(round_of(a_call(ASK_HUMAN, '{"question": "Yes?"}', "a"), reminder), HEALTHY)
    ask_and_drive(dialog)
    assert Reminder.objects.count() == 1

    answer_question(dialog=dialog, question_id=Question.objects.get().pk, answer="Yes")
    drive_until_idle(dialog)

    assert results(requests()[1]) == [("a", "Yes"), ("b", "Reminder 1 is added.")]


@pytest.mark.parametrize("go_elsewhere", [request_stop, retry])
def test_going_on_otherwise_withdraws_a_question(dialog: Dialog, play: Play, go_elsewhere: Callable[..., None]) -> None:
    play(calling(10, ASK_HUMAN, '{"question": "Yes?"}'), HEALTHY)
    ask_and_drive(dialog)

    go_elsewhere(dialog=dialog)
    ask(dialog, "Something else") if go_elsewhere is request_stop else None
    drive_until_idle(dialog)

    assert Question.objects.get().status == "withdrawn"
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


def test_critical_does_not_clear_while_a_question_waits(dialog: Dialog, play: Play) -> None:
    play(calling(950, ASK_HUMAN, '{"question": "Yes?"}'), HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.courses.count(), Question.objects.get().status) == (1, "pending")
    assert not Message.objects.filter(origin=MessageOrigin.REMEDIATION).exists()


def test_clear_mind_opens_a_course_with_its_reminder(dialog: Dialog, play: Play) -> None:
    requests = play(calling(10, "clear_mind", '{"reminder_content": "Go on at step 3"}'), HEALTHY)

    ask_and_drive(dialog, "Do it")

    course = Course.objects.get(number=2)
    assert (course.opened_by, course.carried["reminders"]) == ("agent", [1])
    assert "Go on at step 3" in requests()[1]["messages"][0]["content"]
    assert [m["role"] for m in requests()[1]["messages"]] == ["system", "user"]


def test_a_request_without_an_answer_goes_along_into_the_new_course(dialog: Dialog, play: Play) -> None:
    requests = play(calling(10, "clear_mind"), calling(10, "clear_mind"), HEALTHY)

    ask_and_drive(dialog, "What is 2 + 2?")

    assert "What is 2 + 2?" in requests()[1]["messages"][-1]["content"]
    assert "What is 2 + 2?" in requests()[2]["messages"][-1]["content"]
    assert Course.objects.get(number=3).carried["request"] == Message.objects.get(origin="typed").pk


def test_a_request_that_was_answered_is_not_asked_again(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, "Four."), calling(10, "clear_mind"), HEALTHY)
    ask_and_drive(dialog, "What is 2 + 2?")

    ask_and_drive(dialog, "Tidy up")

    opening, handover = requests()[-1]["messages"][-1]["content"].split(OPENING)
    assert "2 + 2" not in opening
    assert "> user: What is 2 + 2?" in handover


def test_clear_mind_comes_after_its_siblings(dialog: Dialog, play: Play) -> None:
    add = a_call("add_reminder", '{"content": "Kept"}', "b")
    requests = play(round_of(a_call("clear_mind", call_id="a"), add), HEALTHY)

    ask_and_drive(dialog)

    assert "Kept" in requests()[1]["messages"][0]["content"]
    assert statuses() == [("clear_mind", "done"), ("add_reminder", "done")]


def test_a_round_that_clears_twice_begins_one_course_with_both_reminders(dialog: Dialog, play: Play) -> None:
    twice = [a_call("clear_mind", json.dumps({"reminder_content": f"Note {name}"}), name) for name in "ab"]
    requests = play(round_of(*twice), HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.courses.count(), statuses()) == (2, [("clear_mind", "done")] * 2)
    assert all(note in requests()[1]["messages"][0]["content"] for note in ("Note a", "Note b"))


def test_of_two_clear_minds_neither_begins_a_course_if_one_reminder_is_not_kept(dialog: Dialog, play: Play) -> None:
    too_long = a_call("clear_mind", json.dumps({"reminder_content": "x" * 100_000}), "a")
    play(round_of(too_long, a_call("clear_mind", call_id="b")), HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.courses.count(), statuses()) == (1, [("clear_mind", "failed")] * 2)


def test_a_reminder_that_would_take_more_than_a_quarter_of_the_room_is_refused_with_both_sizes(
    dialog: Dialog, play: Play
) -> None:
    LLM.objects.update(context_length=6_000)
    much = json.dumps({"content": long_text(1, 85)})
    clearing = json.dumps({"reminder_content": long_text(1, 85)})
    requests = play(calling(10, "add_reminder", much), calling(10, "clear_mind", clearing), HEALTHY)

    ask_and_drive(dialog)

    assert (dialog.courses.count(), statuses()) == (1, [("add_reminder", "failed"), ("clear_mind", "failed")])
    for request in requests()[1:]:
        assert re.search(r"about [\d,]+ tokens, and at most 1,\d+ fit", request["messages"][-1]["content"])


def test_clear_mind_is_refused_when_a_sibling_failed(dialog: Dialog, play: Play) -> None:
    broken = a_call("update_reminder", '{"number": 7, "content": "x"}', "a")
    requests = play(round_of(broken, a_call("clear_mind", call_id="b")), HEALTHY)

    ask_and_drive(dialog)

    assert dialog.courses.count() == 1
    assert "update_reminder" in dict(results(requests()[1]))["b"]


def test_what_is_typed_while_tools_run_is_in_the_very_next_request(dialog: Dialog, play: Play) -> None:
    note = '{"content": "Step 3"}'
    requests = play(*[calling(10, "add_reminder", note, f"c{number}") for number in range(3)], HEALTHY)
    ask(dialog, "Tidy the tables.")
    async_to_sync(drive)(dialog.pk)

    post_message(dialog=Dialog.objects.get(pk=dialog.pk), content="WAIT, do not touch the database!")
    drive_until_idle(dialog)

    assert "WAIT" not in str(requests()[0]["messages"])
    assert requests()[1]["messages"][-1]["content"] == "WAIT, do not touch the database!"
    assert [m["role"] for m in requests()[1]["messages"]] == ["system", "user", "assistant", "tool", "user"]


def test_no_call_is_begun_once_a_person_has_typed_something(dialog: Dialog, play: Play, offer: Offer) -> None:
    made: list[str] = []

    def dropping(table: str) -> OutsideTool:
        async def drop(_arguments: Any) -> str:
            made.append(table)
            await sync_to_async(post_message)(dialog=dialog, content="WAIT!")
            return "dropped"

        return outside(f"drop_{table}", drop)

    offer(dropping("logs"), dropping("people"))
    calls = [a_call("drop_logs", call_id="logs"), a_call("drop_people", call_id="people")]
    requests = play(round_of(*calls, a_call("clear_mind", call_id="clear")), HEALTHY)

    ask_and_drive(dialog, "Tidy the tables.")

    assert (made, dialog.courses.count()) == (["logs"], 1)
    assert [status for _name, status in statuses()] == ["done", "failed", "failed"]
    assert "the person has written something" in dict(results(requests()[1]))["people"]
    assert requests()[1]["messages"][-1]["content"] == "WAIT!"


def test_a_call_that_was_begun_before_a_worker_died_is_not_said_to_be_unmade(
    dialog: Dialog, play: Play, offer: Offer
) -> None:
    async def look(_arguments: Any) -> str:
        await ToolCall.objects.filter(name="count").aupdate(started_at=timezone.now())
        await sync_to_async(post_message)(dialog=dialog, content="WAIT!")
        return "looked"

    offer(outside("look", look), outside("count", look))
    requests = play(round_of(a_call("look", call_id="look"), a_call("count", call_id="count")), HEALTHY)

    ask_and_drive(dialog, "Tidy the tables.")

    assert "what it did is not known" in dict(results(requests()[1]))["count"]


@pytest.mark.parametrize("slices", [1, 3, 6], ids=["before it", "during it", "before the new course"])
def test_what_is_typed_during_a_countdown_comes_before_prompts_and_new_courses(
    dialog: Dialog, play: Play, slices: int
) -> None:
    requests = play(CRITICAL)
    ask(dialog, "Tidy the tables.")
    for _ in range(slices):
        async_to_sync(drive)(dialog.pk)

    post_message(dialog=Dialog.objects.get(pk=dialog.pk), content="WAIT, do not touch the database!")
    before = len(requests())
    async_to_sync(drive)(dialog.pk)

    assert requests()[before]["messages"][-1]["content"].startswith("WAIT, do not touch the database!")


def test_an_agent_that_only_clears_is_refused_and_then_stopped(dialog: Dialog, play: Play, settings: Any) -> None:
    settings.DOMINDS_MAX_TOOL_ROUNDS = 5
    requests = play(calling(10, "clear_mind"))

    ask_and_drive(dialog, "Clear your mind")

    assert dialog.courses.count() == 3
    assert "did nothing but clear" in results(requests()[3])[-1][1]
    assert (dialog.paused_by, dialog.answer_due) == ("rounds", False)


def test_an_earlier_course_can_be_read_in_pages(dialog: Dialog, play: Play) -> None:
    look = calling(10, "read_course", '{"course": 1, "page": 2}')
    requests = play(said(10, "word " * 1200), calling(10, "clear_mind"), look, HEALTHY)
    for text in ("Write a lot", "Tidy up"):
        ask_and_drive(dialog, text)

    assert results(requests()[-1])[-1][1].startswith("Course 1, page 2 of 2:")


@pytest.fixture
def large_file(agent: Agent) -> Agent:
    """An agent with a file of 30,000 bytes in its workspace."""
    agent.workspace_enabled = True
    agent.save()
    folder = Path(django_settings.DOMINDS_WORKSPACES_DIR) / agent.slug
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "large.txt").write_text("0123456789\n" * 3000)
    return agent


READ = '{"path": "large.txt", "lines": 3000}'


@pytest.mark.parametrize(
    ("prompt_tokens", "limit", "withheld"),
    [
        (10, None, False),
        (600, None, True),
        (950, None, True),
        # An LLM may have a size of its own above which they are.
        (600, 0, False),
        (600, 50_000, False),
        (600, 100, True),
    ],
)
def test_large_results_are_withheld_while_caution_or_critical_lasts(
    dialog: Dialog, llm: LLM, play: Play, large_file: Agent, prompt_tokens: int, limit: int | None, withheld: bool
) -> None:
    llm.tool_result_limit_bytes = limit
    llm.save()
    requests = play(calling(prompt_tokens, "read_file", READ), HEALTHY)

    ask_and_drive(dialog)

    sent = results(requests()[1])[0][1]
    assert ("withheld" in sent, len(sent) > 30_000) == (withheld, not withheld)
    assert len(Message.objects.get(role="tool").content) > 30_000


def test_a_guarded_dialog_withholds_nothing_as_it_compacts_in_time(
    dialog: Dialog, llm: LLM, play: Play, large_file: Agent
) -> None:
    guard(dialog, 100_000, 200_000)
    LLM.objects.update(optimal_max_tokens=40_000)
    requests = play(calling(60_000, "read_file", READ), HEALTHY)

    ask_and_drive(dialog)

    assert "withheld" not in results(requests()[1])[0][1]


def test_remediation_is_asked_between_the_results_and_the_next_answer(dialog: Dialog, play: Play) -> None:
    requests = play(calling(600, "add_reminder", '{"content": "x"}'), HEALTHY)

    ask_and_drive(dialog)

    assert [m["role"] for m in requests()[1]["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert Generation.objects.count() == 2


def test_a_stop_in_a_call_ends_it_and_leaves_no_call_unanswered(dialog: Dialog, play: Play, offer: Offer) -> None:
    begun = threading.Event()

    async def hang(_arguments: Any) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    async def stop() -> None:
        while not begun.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.to_thread(request_stop, dialog=dialog)

    offer(outside("slow", hang))
    requests = play(round_of(a_call("slow", call_id="a"), a_call("other", call_id="b")), HEALTHY)
    ask(dialog)
    drive_until_idle(dialog, beside=stop)
    assert statuses() == [("slow", "withdrawn"), ("other", "withdrawn")]

    ask_and_drive(dialog, "Go on")

    assert [call_id for call_id, _content in results(requests()[1])] == ["a", "b"]


@pytest.mark.parametrize(("idempotent", "outcome"), [(True, "done"), (False, "interrupted")])
def test_after_a_crash_only_what_may_be_repeated_is_repeated(
    dialog: Dialog, play: Play, offer: Offer, idempotent: bool, outcome: str
) -> None:
    made = []

    async def work(_arguments: Any) -> str:
        made.append(1)
        return "ok"

    offer(outside("work", work, idempotent=idempotent))
    play(calling(10, "work"), HEALTHY)
    ask(dialog)
    leave_running(dialog, idempotent=idempotent)

    drive_until_idle(dialog)

    assert (statuses(), len(made)) == ([("work", outcome)], int(idempotent))


def leave_running(dialog: Dialog, *, idempotent: bool) -> None:
    """As a worker leaves it that died in the middle of the call: lease run out, call committed as running."""
    claim = lease.claim(dialog.pk)
    assert claim is not None
    async_to_sync(generate)(claim, attempt=1, policy=policy())
    ToolCall.objects.update(status="running", idempotent=idempotent)
    lease.give_back(claim)


def test_a_server_that_refuses_tools_is_asked_again_without_them(dialog: Dialog, llm: LLM, play: Play) -> None:
    requests = play({"error": {"code": "tools_refused", "message": "no tools"}}, HEALTHY)

    ask_and_drive(dialog)

    llm.refresh_from_db()
    assert llm.tool_calling == "refused"
    assert [bool(request["tools"]) for request in requests()] == [True, False]
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."
