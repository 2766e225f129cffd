"""The acceptance criteria of context health, end to end: provider's usage, driver, database, the next request."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest
from django.db import connection

from dialogs.agents.tools.registry import tools_for
from dialogs.agents.writes import add_reminder
from dialogs.context.carry_over import OPENING
from dialogs.driver import run
from dialogs.driver.decide import Action, ClearMind, InsertPrompt, Push, decide
from dialogs.driver.writes.courses import start_course
from dialogs.models import LLM, Agent, Course, Dialog, Generation, Message, Question, RemediationPrompt, Reminder
from dialogs.models.dialog import WorkLanguage
from dialogs.models.message import MessageOrigin
from dialogs.models.reminder import Author
from dialogs.turns.prompts import prompt
from dialogs.turns.state import Policy, State
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import go_on, pause, post_message, request_stop
from tests.dialogs.compacting_builders import calibrate, guard
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _roomy(agent: Agent, llm: LLM) -> None:
    """A window of 200,000 tokens and the defaults: caution above 100,000, critical above 180,000. Compaction is on, and
    the agent is to be reminded first."""
    llm.context_length, llm.optimal_max_tokens, llm.compaction = 200_000, None, "automatic"
    llm.save()
    agent.when_full = "remind"
    agent.save()
    calibrate(llm)


@pytest.fixture(params=["remind", "compact"])
def whatever_comes_first(request: pytest.FixtureRequest, _roomy: None, agent: Agent) -> None:
    agent.when_full = request.param
    agent.save()


@pytest.fixture
def uncompacted(_roomy: None, llm: LLM) -> None:
    llm.compaction = "off"
    llm.save()


in_both_modes = pytest.mark.usefixtures("whatever_comes_first")
with_compaction_off = pytest.mark.usefixtures("uncompacted")


def prompts(dialog: Dialog) -> list[tuple[str, int | None]]:
    found = RemediationPrompt.objects.filter(dialog=dialog).order_by("message__seq")
    return [(prompt.level, prompt.remaining) for prompt in found]


def converse(dialog: Dialog, turns: int) -> None:
    for _turn in range(turns):
        ask_and_drive(dialog)


HEALTHY, CAUTION, CRITICAL = said(50_000), said(150_000), said(190_000)


@in_both_modes
@pytest.mark.parametrize(
    ("prompt_tokens", "asked"),
    [
        (None, []),
        (100_000, []),
        (100_001, [("caution", None)]),
        (180_000, [("caution", None)]),
        (180_001, [("critical", 4)]),
    ],
)
def test_the_boundaries_are_strict_and_without_usage_nothing_is_asked(
    dialog: Dialog, play: Play, prompt_tokens: int | None, asked: list[Any]
) -> None:
    play(said(prompt_tokens), HEALTHY)

    converse(dialog, 1)

    assert prompts(dialog) == asked


def test_entering_caution_asks_once_by_an_ordinary_user_message_that_stays_and_goes_on_at_once(
    dialog: Dialog, play: Play
) -> None:
    requests = play(CAUTION)

    converse(dialog, 1)

    message = Message.objects.get(origin=MessageOrigin.REMEDIATION)
    assert (prompts(dialog), message.role, message.turn) == ([("caution", None)], "user", 2)
    assert [request["messages"][-1]["role"] for request in requests()] == ["user", "user"]
    assert ["add_reminder" in request["messages"][-1]["content"] for request in requests()] == [False, True]
    assert message.content.startswith("[System notice]")
    for words in ("no new request", "bare acknowledgement", "First actionable step", "Key pointers", "verify", "lost"):
        assert words in message.content


def test_caution_asks_again_on_the_llms_cadence(dialog: Dialog, llm: LLM, play: Play) -> None:
    llm.caution_remediation_cadence_generations = 3
    llm.save()
    play(CAUTION)

    while Generation.objects.count() <= 10:
        converse(dialog, 1)

    answers = [generation.prompt_leaf_id for generation in Generation.objects.order_by("id")]
    inserted = Message.objects.filter(origin=MessageOrigin.REMEDIATION).values_list("pk", flat=True)
    assert [answers.index(pk) for pk in inserted] == [1, 4, 7, 10]


@in_both_modes
def test_five_prompts_count_down_and_then_a_new_course_begins_in_the_same_drive(dialog: Dialog, play: Play) -> None:
    """Each names the tools and how many follow."""
    requests = play(*[CRITICAL] * 6, HEALTHY)

    converse(dialog, 1)

    assert prompts(dialog) == [("critical", left) for left in (4, 3, 2, 1, 0)]
    texts = Message.objects.filter(origin=MessageOrigin.REMEDIATION).values_list("content", flat=True)
    for left, text in zip(("4 more times", "3 more times", "2 more times", "1 more time", "last"), texts, strict=True):
        assert all(words in text for words in (left, "update_reminder", "add_reminder", "clear_mind"))
    assert [(course.number, course.opened_by) for course in dialog.courses.all()] == [(1, "start"), (2, "auto")]
    assert Generation.objects.filter(course__number=1).count() == 6
    assert Generation.objects.get(course__number=2).number == 1
    assert len(requests()) == 7
    assert not Question.objects.exists()
    assert (dialog.is_busy, dialog.paused_by) == (False, "")


@in_both_modes
def test_an_unknown_reading_in_the_middle_changes_nothing(dialog: Dialog, play: Play) -> None:
    play(CRITICAL, CRITICAL, said(None), *[CRITICAL] * 4, HEALTHY)
    converse(dialog, 1)
    assert prompts(dialog) == [("critical", 4), ("critical", 3)]

    converse(dialog, 1)

    assert prompts(dialog) == [("critical", left) for left in (4, 3, 2, 1, 0)]
    assert dialog.courses.count() == 2


def test_the_new_course_shows_the_model_reminders_and_of_the_old_one_a_handover(dialog: Dialog, play: Play) -> None:
    """Compliance is recorded prompt by prompt."""
    add = calling(190_000, "add_reminder", '{"content": "Port 8080\\nRun make"}')
    requests = play(CRITICAL, CRITICAL, add, *[CRITICAL] * 3, HEALTHY)

    ask_and_drive(dialog, "Something of the first course")

    curated = RemediationPrompt.objects.order_by("message__seq").values_list("curated", flat=True)
    assert list(curated) == [False, True, False, False, False]
    last = requests()[-1]["messages"]
    assert [message["role"] for message in last] == ["system", "user"]
    assert "Port 8080\nRun make" in last[0]["content"]
    opening, handover = last[1]["content"].split(OPENING)
    assert "cleared automatically" in opening
    assert "> user: Something of the first course" in handover


def test_a_clear_on_the_second_prompt_ends_the_countdown(dialog: Dialog, play: Play) -> None:
    play(CRITICAL, CRITICAL, calling(190_000, "clear_mind"), HEALTHY)

    converse(dialog, 1)

    assert prompts(dialog) == [("critical", 4), ("critical", 3)]
    assert Course.objects.get(number=2).opened_by == "agent"


@in_both_modes
def test_a_message_during_critical_is_answered_first_and_counts_as_one(dialog: Dialog, play: Play) -> None:
    requests = play(CRITICAL, said(190_000, "Four."), *[CRITICAL] * 4, HEALTHY)
    ask(dialog)
    post_message(dialog=dialog, content="What is 2 + 2?")

    drive_until_idle(dialog)

    carried = requests()[1]["messages"][-1]["content"]
    assert carried.startswith("What is 2 + 2?\n\n[System notice]")
    assert "Answer the message above first" in carried
    assert prompts(dialog) == [("critical", left) for left in (4, 3, 2, 1, 0)]
    assert Message.objects.get(content="What is 2 + 2?").remediation_prompt.remaining == 4
    assert dialog.courses.count() == 2


def test_a_caution_prompt_waits_until_the_queue_is_empty(dialog: Dialog, play: Play) -> None:
    play(CAUTION)
    ask(dialog)
    post_message(dialog=dialog, content="And this?")

    drive_until_idle(dialog)

    origins = list(Message.objects.order_by("seq").values_list("origin", flat=True))
    assert origins == ["typed", "agent", "typed", "agent", "remediation", "agent"]


def test_a_push_is_the_last_word_of_its_request_and_no_older_notice_goes_along(dialog: Dialog, play: Play) -> None:
    requests = play(CRITICAL, said(50_000, "Four."), HEALTHY)
    ask(dialog)
    post_message(dialog=dialog, content="What is 2 + 2?")
    drive_until_idle(dialog)
    assert "Answer the message above first" in str(requests()[-1])

    start_run(dialog=dialog, goal="Ship it", max_generations=1)
    drive_until_idle(dialog)

    sent = requests()[-1]["messages"]
    assert sent[-1]["content"] == Message.objects.get(origin=MessageOrigin.PUSH).content
    assert "Answer the message above first" not in str(sent)


WHAT_IS_ASKED = {
    "en": (
        *("no new request from the person", "a bare acknowledgement is not wanted", "ontinuation package"),
        *("Several lines", "scaled to the task", "only what the Taskdoc does not say", "clear_mind()"),
        *("irst actionable step", "ey pointers", "ow to run and verify", "etails that are easily lost"),
    ),
    "zh-hans": (
        *("不是用户的新请求", "请勿只回复“收到”", "接续包", "可写多行", "篇幅随任务大小而定", "clear_mind()"),
        *("只写任务书（Taskdoc）里没有的内容", "第一个可执行步骤", "关键线索", "如何运行与验证", "容易丢失的细节"),
    ),
}


@pytest.mark.parametrize("name", ["caution", "critical"])
@pytest.mark.parametrize(("language", "now"), [("en", (" now",)), ("zh-hans", ("现在至少调用其中一个", "请立即保存"))])
def test_each_prompt_says_what_to_write_down_how_and_when(name: str, language: str, now: tuple[str, ...]) -> None:
    text = prompt(name, language=language, remaining=2)

    assert [words for words in WHAT_IS_ASKED[language] if words not in text] == []
    assert any(words in text for words in now)


@pytest.mark.parametrize("language", WorkLanguage.values)
@pytest.mark.parametrize("name", ["caution", "critical"])
@pytest.mark.parametrize("reminders", ["", "1, 2"])
def test_every_call_that_a_prompt_names_is_one_that_the_agent_can_make(
    dialog: Dialog, language: str, name: str, reminders: str
) -> None:
    offered = {tool.name: tool.parameters for tool in tools_for(dialog)}

    text = prompt(name, language=language, reminders=reminders, remaining=2)

    calls = re.findall(r"(\w+)\(([^()]*)\)", text)
    assert {called for called, _given in calls} == {"add_reminder", "update_reminder", "clear_mind"}
    for called, given in calls:
        jsonschema.validate(arguments_in(given), offered[called])
    assert "Taskdoc" in text
    assert reminders in text


@pytest.mark.parametrize("language", WorkLanguage.values)
def test_every_call_that_a_course_or_a_run_begins_with_is_one_that_the_agent_can_make(
    dialog: Dialog, play: Play, language: str
) -> None:
    play(said(10))
    ask_and_drive(dialog)
    start_course(dialog=dialog)
    start_run(dialog=dialog, goal="Ship it", max_generations=2)
    dialog.refresh_from_db()
    offered = {tool.name: tool.parameters for tool in tools_for(dialog)}
    opening = prompt("opening", language=language, number=2, earlier=1, opened_by="agent", tools=True)

    calls = re.findall(r"(\w+)\(([^()]*=[^()]*)\)", opening + prompt("push", language=language, tools=True))

    assert {called for called, _given in calls} == {"read_course", "goal_done"}
    for called, given in calls:
        jsonschema.validate(arguments_in(given), offered[called])


def arguments_in(given: str) -> dict[str, Any]:
    """As an agent reads them: dots stand for a number, dots in quotation marks for a text."""
    pairs = [pair.split("=", 1) for pair in given.split(", ") if pair]
    return {name: json.loads(value) if value != "..." else 1 for name, value in pairs}


def test_a_reminder_of_days_later_does_not_answer_an_old_prompt(dialog: Dialog, play: Play) -> None:
    play(CAUTION, said(50_000, "Noted."), calling(50_000, "add_reminder", '{"content": "Buy milk"}'), HEALTHY)

    converse(dialog, 1)
    ask_and_drive(dialog, "Remind yourself to buy milk.")

    assert dialog.reminders.count() == 1
    assert list(RemediationPrompt.objects.values_list("curated", flat=True)) == [False]


def test_the_same_text_again_is_no_curating_and_leaves_its_author(dialog: Dialog, play: Play) -> None:
    add_reminder(dialog=dialog, content="Port 8080", author=Author.PERSON)
    requests = play(
        CAUTION, calling(50_000, "update_reminder", '{"number": 1, "content": "Port 8080"}'), HEALTHY, HEALTHY
    )

    converse(dialog, 1)

    assert Reminder.objects.get().author == Author.PERSON
    assert "says just that already" in str(requests()[2]["messages"])
    assert not RemediationPrompt.objects.get().curated


@pytest.mark.parametrize("action", [InsertPrompt, ClearMind, Push])
def test_a_stop_that_comes_just_after_the_decision_is_obeyed(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch, action: type[Action]
) -> None:
    play(CRITICAL if action is not Push else said(10))
    chosen: list[Action] = []

    def stop() -> None:
        request_stop(dialog=dialog)
        connection.close()

    def stopped_at_once(state: State, rules: Policy) -> Action:
        found = decide(state, rules)
        if isinstance(found, action):
            chosen.append(found)
            with ThreadPoolExecutor() as elsewhere:
                elsewhere.submit(stop).result()
        return found

    monkeypatch.setattr(run, "decide", stopped_at_once)
    if action is Push:
        start_run(dialog=dialog, goal="Count to ten.", max_generations=5)
    else:
        ask(dialog)

    drive_until_idle(dialog)

    assert (len(chosen), dialog.paused_by) == (1, "person")
    assert dialog.courses.count() == 1
    last = dialog.messages.order_by("seq").last()
    assert last is None or last.role == "assistant", "nothing was inserted after the last answer"


def test_a_stop_stays_a_stop_while_critical_lasts_until_the_person_says_so(dialog: Dialog, play: Play) -> None:
    play(CRITICAL, HEALTHY)
    ask(dialog)
    pause(dialog=dialog)

    drive_until_idle(dialog)
    assert (prompts(dialog), Generation.objects.count()) == ([], 1)

    go_on(dialog=dialog)
    drive_until_idle(dialog)
    assert prompts(dialog) == [("critical", 4)]


def test_a_prompt_that_no_longer_fits_opens_a_course_that_still_holds_the_request(dialog: Dialog, play: Play) -> None:
    overflow = {"error": {"code": "context_overflow", "message": "too long"}}
    requests = play(HEALTHY, overflow, said(10_000, "Here you are."))
    guard(dialog)
    converse(dialog, 1)

    ask_and_drive(dialog, "The long question")

    assert Course.objects.get(number=2).opened_by == "recovery"
    assert "The long question" in requests()[-1]["messages"][-1]["content"]
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Here you are."


@with_compaction_off
def test_where_compaction_is_off_a_refused_prompt_opens_no_course(dialog: Dialog, play: Play) -> None:
    play(HEALTHY, {"error": {"code": "context_overflow", "message": "too long"}})
    converse(dialog, 1)

    ask_and_drive(dialog, "The long question")

    assert (dialog.courses.count(), dialog.paused_by) == (1, "failure")


def test_courses_that_are_full_from_the_start_are_not_opened_for_ever(dialog: Dialog, play: Play) -> None:
    play(CRITICAL)

    converse(dialog, 1)

    assert dialog.paused_by == "full"
    assert 4 <= dialog.courses.count() <= 5
    assert Generation.objects.count() >= 15


def test_an_agent_that_is_asked_in_vain_for_ever_is_asked_no_more(dialog: Dialog, play: Play) -> None:
    """Each course begins roomy and fills at its second answer: no new course helps, and none is full at once."""
    play(*[calling(100, "update_taskdoc", '{"content": "x"}'), *[CRITICAL] * 6] * 12)

    converse(dialog, 1)

    assert dialog.paused_by == "prompts"
    assert RemediationPrompt.objects.count() == Policy().prompts
    ask_and_drive(dialog, "And now?")
    assert RemediationPrompt.objects.count() > Policy().prompts, "a person has spoken"


def test_a_new_llm_is_judged_by_its_own_window(dialog: Dialog, llm: LLM, play: Play) -> None:
    play(said(150_000), HEALTHY)
    dialog.llm = LLM.objects.create(
        provider=llm.provider, model_id="huge", context_length=10**6, optimal_max_tokens=500_000
    )
    dialog.save()

    converse(dialog, 1)

    assert prompts(dialog) == []


def test_the_prompts_speak_the_dialogs_work_language(dialog: Dialog, play: Play) -> None:
    dialog.work_language = "zh-hans"
    dialog.save()
    play(*[CRITICAL] * 6, HEALTHY)

    converse(dialog, 1)

    texts = list(Message.objects.filter(origin=MessageOrigin.REMEDIATION).values_list("content", flat=True))
    assert all(text.startswith("【系统提示】") and "告急" in text for text in texts)
    assert ["最多再提醒 4 次" in texts[0], "最后一次" in texts[4]] == [True, True]
    assert Message.objects.get(origin=MessageOrigin.HANDOVER).content.startswith("【系统提示】第 2 程")


@with_compaction_off
def test_a_model_without_tools_still_comes_out_in_a_new_course(dialog: Dialog, llm: LLM, play: Play) -> None:
    llm.tool_calling = "off"
    llm.save()
    requests = play(*[CRITICAL] * 6, HEALTHY)

    converse(dialog, 1)

    assert dialog.courses.count() == 2
    assert not any(request["tools"] for request in requests())
