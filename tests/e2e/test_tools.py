"""What an agent does beside answering, live in a real Chromium: tools, questions, a run on its own, the countdown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import DESK, NO_WIDER, PHONE, SCHEMES, answers, ask, begin_dialog, play, rest, send
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=1000, context_length_source="admin",
    optimal_max_tokens=500, compaction="off")
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
# Longer than a phone is wide, and without a place to break it.
PATH = "src/" + "very_long_module_name" * 6 + ".py"
SCROLLS_SIDEWAYS = """() => [document.documentElement, document.getElementById("scroller")]
  .some((element) => element.scrollWidth > element.clientWidth)"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, scripted: Stack, faults: list[str]) -> Page:
    begin_dialog(page, scripted)
    return page


def said(prompt_tokens: int, text: str, *, seconds: float = 0.0) -> dict[str, Any]:
    """An answer that streams for so long."""
    words = text.split(" ")
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 5}
    return {"text": [f"{word} " for word in words], "delay": seconds / len(words), "usage": usage}


def calling(prompt_tokens: int, **calls: dict[str, Any]) -> dict[str, Any]:
    """An answer that calls these tools, in this order, with these arguments."""
    made = [{"id": f"id-{name}", "name": name, "arguments": json.dumps(given)} for name, given in calls.items()]
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 5}
    return {"tool_calls": made, "usage": usage, "finish": "tool_calls"}


def assert_fits_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    assert not page.evaluate(SCROLLS_SIDEWAYS)
    page.set_viewport_size(DESK)


def inserted(page: Page) -> Locator:
    return page.locator("#rows .message-row.inserted")


def test_tool_calls_are_followed_in_the_panel_the_notebook_and_the_transcript_and_a_question_waits_for_a_choice(
    chat: Page, scripted: Stack
) -> None:
    follow_the_task_in_the_panel(chat, scripted)
    see_a_reminder_come_into_the_notebook(chat, scripted)
    unfold_the_calls(chat)
    be_asked(chat, scripted)
    choose(chat)


def follow_the_task_in_the_panel(page: Page, stack: Stack) -> None:
    play(stack, calling(250, add_reminder={"content": PATH}, teleport={"where": PATH}), said(300, "One worked."))
    panel = page.locator("#health-panel")
    page.get_by_role("button", name="Context health: show every number").click()
    expect(panel).to_be_visible()
    expect(panel.get_by_text("Progress of the task")).to_have_count(0)

    ask(page, f"Look at {PATH} and note it down.")

    task = panel.locator(".health-task")
    expect(task.get_by_text("Progress of the task")).to_be_visible()
    expect(task).to_contain_text("executing")
    expect(task.locator(".task-actions li")).to_have_text(["add_reminder"])
    expect(task.locator(".task-observations li").last).to_contain_text("teleport failed")
    the_panel_can_be_read_by_everybody(page)
    page.keyboard.press("Escape")


def the_panel_can_be_read_by_everybody(page: Page) -> None:
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, "#health-drawer") == []
    page.set_viewport_size(PHONE)
    page.locator(".health-task").scroll_into_view_if_needed()
    assert not page.locator("#health-panel").evaluate("element => element.scrollWidth > element.clientWidth")
    assert page.evaluate(NO_WIDER)
    page.set_viewport_size(DESK)


def see_a_reminder_come_into_the_notebook(page: Page, stack: Stack) -> None:
    look = {"content": f"Look at {PATH} first."}
    play(stack, calling(250, add_reminder=look, teleport={"where": PATH}), said(300, "One of them worked."))
    page.get_by_role("button", name="Reminders and Taskdoc").click()

    ask(page, "Note it down, and teleport.")

    expect(page.locator("#notebook-count")).to_have_text("2")
    expect(page.locator("#reminder-2")).to_contain_text(f"Look at {PATH} first.")
    expect(page.locator("#reminder-2")).to_contain_text("agent")
    assert_fits_a_phone(page)
    page.keyboard.press("Escape")


def unfold_the_calls(page: Page) -> None:
    """They are folded, before the answer."""
    calls = page.locator(".call")
    expect(calls).to_have_count(4)
    expect(page.locator(".call[open]")).to_have_count(0)
    for call, name, status in ((calls.nth(2), "add_reminder", "done"), (calls.last, "teleport", "failed")):
        expect(call.locator(".call-name")).to_have_text(name)
        expect(call).to_have_attribute("data-status", status)
    expect(answers(page)).to_have_count(4)
    expect(answers(page).last).to_contain_text("One of them worked.")

    calls.last.locator("summary").click()
    expect(calls.last).to_contain_text("There is no tool called 'teleport'.")
    assert_fits_a_phone(page)


def be_asked(page: Page, stack: Stack) -> None:
    question = {"question": f"Which harbour shall {PATH} name?", "choices": ["Lisbon", "Porto, where the river is"]}
    play(stack, calling(250, ask_human=question), said(300, "Lisbon it is."))

    send(page, "Plan the trip.")

    asked = page.locator(".question")
    expect(asked).to_have_attribute("data-status", "pending")
    expect(asked).to_contain_text("Which harbour")
    rest(page)
    expect(page.locator("#turn")).to_contain_text("The agent waits for your answer.")
    expect(page.locator("#live-region > p").last).to_have_text(f"The agent asks: {question['question']}")
    expect(asked.get_by_role("button", name="Porto")).to_be_visible()
    assert_fits_a_phone(page)


def choose(page: Page) -> None:
    asked = page.locator(".question")
    asked.get_by_role("button", name="Lisbon").click()

    expect(answers(page).last).to_contain_text("Lisbon it is.")
    expect(asked).to_have_attribute("data-status", "answered")
    expect(asked.locator(".question-answer")).to_contain_text("Lisbon")
    expect(page.locator("#turn")).not_to_contain_text("waits for your answer")
    assert_fits_a_phone(page)


def start_run(page: Page, goal: str) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Keep going on its own").click()
    page.get_by_label("Goal").fill(goal)
    page.get_by_label("At most how many generations").fill("9")
    # Pressed by chance: what was typed is there again.
    page.keyboard.press("Escape")
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Keep going on its own").click()
    expect(page.get_by_label("Goal")).to_have_value(goal)
    expect(page.get_by_label("At most how many generations")).to_have_value("9")
    page.get_by_role("button", name="Start").click()


def test_a_run_counts_live_rests_when_paused_and_ends_with_its_summary(chat: Page, scripted: Stack) -> None:
    play(
        scripted,
        said(200, "The first part is done."),
        said(220, "The second part takes a while and then it is done too.", seconds=5),
        calling(240, goal_done={"summary": f"All parts of {PATH} are **done**."}),
        said(260, "That was all."),
    )
    bar = chat.locator("#autonomous")

    start_run(chat, f"Do all parts of {PATH}.")
    expect(bar).to_contain_text("generation 1 of 9")
    assert_fits_a_phone(chat)
    bar.get_by_role("button", name="Pause").click()
    expect(bar).to_contain_text("Paused by you.")
    expect(bar).to_contain_text("generation 2 of 9")
    rest(chat)
    expect(answers(chat)).to_have_count(2)
    assert_fits_a_phone(chat)

    bar.get_by_role("button", name="Go on").click()
    expect(bar).to_contain_text("Ended: the agent says that it is done.")
    expect(bar.locator(".run-summary strong")).to_have_text("done")
    expect(answers(chat).last).to_contain_text("That was all.")
    rest(chat)
    assert_fits_a_phone(chat)


def test_the_countdown_runs_live_and_ends_in_a_new_course(chat: Page, scripted: Stack) -> None:
    play(
        scripted,
        *[said(950 + number, f"I go on with {PATH}.", seconds=0.5) for number in range(5)],
        said(960, "I still go on and on.", seconds=4),
        said(120, "Here I am again."),
    )

    send(chat, f"Do everything in {PATH}.")

    expect(inserted(chat).first).to_contain_text("automatic")
    expect(chat.locator("#meter")).to_have_attribute("data-level", "critical")
    expect(inserted(chat)).to_have_count(5)
    expect(inserted(chat).locator(".prompt-facts")).to_contain_text(
        [*[f"{left} more reminder" for left in (4, 3, 2, 1)], "the last reminder"]
    )
    assert_fits_a_phone(chat)

    expect(chat.locator("#course-2")).to_contain_text("It began by itself")
    expect(answers(chat)).to_have_count(1)
    expect(answers(chat).last).to_contain_text("Here I am again.")
    expect(chat.locator("#meter")).to_have_attribute("data-level", "healthy")
    earlier = chat.locator(".earlier-course")
    expect(earlier).to_have_count(1)
    expect(earlier).not_to_have_attribute("open", "")
    assert_fits_a_phone(chat)

    earlier.locator("summary").first.click()
    expect(earlier.locator(".message-row.inserted")).to_have_count(5)
    expect(earlier).to_contain_text(f"Do everything in {PATH}.")
    assert_fits_a_phone(chat)
