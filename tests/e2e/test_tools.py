"""What an agent does beside answering, live in a real Chromium: tools, questions, a run on its own, the countdown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.steps import answers, ask, begin_dialog, play, rest, send
from tests.stack import Stack

pytestmark = pytest.mark.e2e

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
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
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert not page.evaluate(SCROLLS_SIDEWAYS)
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]


def inserted(page: Page) -> Locator:
    return page.locator("#rows .message-row.inserted")


def test_tool_calls_are_shown_folded_before_the_answer_and_live_in_the_open_notebook(
    chat: Page, scripted: Stack
) -> None:
    play(
        scripted,
        calling(250, add_reminder={"content": f"Look at {PATH} first."}, teleport={"where": PATH}),
        said(300, "One of them worked."),
    )
    chat.get_by_role("button", name="Reminders and Taskdoc").click()

    ask(chat, "Note it down, and teleport.")

    expect(chat.locator("#notebook-count")).to_have_text("1")
    expect(chat.locator("#reminder-1")).to_contain_text(f"Look at {PATH} first.")
    expect(chat.locator("#reminder-1")).to_contain_text("agent")
    assert_fits_a_phone(chat)
    chat.keyboard.press("Escape")

    calls = chat.locator(".call")
    expect(calls).to_have_count(2)
    expect(chat.locator(".call[open]")).to_have_count(0)
    for call, name, status in ((calls.first, "add_reminder", "done"), (calls.last, "teleport", "failed")):
        expect(call.locator(".call-name")).to_have_text(name)
        expect(call).to_have_attribute("data-status", status)
    expect(answers(chat)).to_have_count(2)
    expect(answers(chat).last).to_contain_text("One of them worked.")

    calls.last.locator("summary").click()
    expect(calls.last).to_contain_text("There is no tool called 'teleport'.")
    assert_fits_a_phone(chat)


def test_the_agent_waits_for_a_choice_and_goes_on_with_it(chat: Page, scripted: Stack) -> None:
    question = {"question": f"Which harbour shall {PATH} name?", "choices": ["Lisbon", "Porto, where the river is"]}
    play(scripted, calling(250, ask_human=question), said(300, "Lisbon it is."))

    send(chat, "Plan the trip.")

    asked = chat.locator(".question")
    expect(asked).to_have_attribute("data-status", "pending")
    expect(asked).to_contain_text("Which harbour")
    rest(chat)
    expect(chat.locator("#turn")).to_contain_text("The agent waits for your answer.")
    expect(asked.get_by_role("button", name="Porto")).to_be_visible()
    assert_fits_a_phone(chat)

    asked.get_by_role("button", name="Lisbon").click()

    expect(answers(chat).last).to_contain_text("Lisbon it is.")
    expect(asked).to_have_attribute("data-status", "answered")
    expect(asked.locator(".question-answer")).to_contain_text("Lisbon")
    expect(chat.locator("#turn")).not_to_contain_text("waits for your answer")
    assert_fits_a_phone(chat)


def start_run(page: Page, goal: str) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Keep going on its own").click()
    page.get_by_label("Goal").fill(goal)
    page.get_by_label("At most how many generations").fill("9")
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
    expect(bar).to_contain_text("generation 2 of 9", timeout=20_000)
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
    expect(inserted(chat)).to_have_count(5, timeout=20_000)
    expect(inserted(chat).locator(".prompt-facts")).to_contain_text(
        [*[f"{left} more reminder" for left in (4, 3, 2, 1)], "the last reminder"]
    )
    assert_fits_a_phone(chat)

    expect(chat.locator("#course-2")).to_contain_text("It began by itself", timeout=20_000)
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
