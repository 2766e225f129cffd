"""A long chat with the real tiny model: the window of 2,048 tokens fills, and a new course begins by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.steps import answers, ask, begin_dialog, rest, send, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

WINDOW = 2_048
# About an eighth of the window, so that none leaps over caution and critical at once.
NOTES = "We walked along the river, crossed the old bridge and had bread, cheese and apples under a tree. " * 10
# What came before those: about half of the window.
BEGINNING = NOTES * 4
ENOUGH = 8
HISTORY = """
import json
from dialogs.models import Course, Generation, Question, RemediationPrompt
generations = Generation.objects.select_related("course", "reading").order_by("id")
print(json.dumps({
    "courses": [[course.number, course.opened_by] for course in Course.objects.order_by("number")],
    "readings": [[g.course.number, g.prompt_tokens, g.reading.level] for g in generations if g.status == "finished"],
    "prompts": RemediationPrompt.objects.count(),
    "questions": Question.objects.count(),
}))
"""


@pytest.fixture(scope="module")
def brief(demo: Stack) -> Iterator[Stack]:
    """Reading is quicker than writing: typed words fill the window."""
    limit = "from dialogs.models import Agent; Agent.objects.update(max_output_tokens={})"
    demo.shell(limit.format(16))
    yield demo
    demo.shell(limit.format(None))


@pytest.fixture
def chat(page: Page, brief: Stack, faults: list[str]) -> Page:
    sign_in(page, brief)
    begin_dialog(page, brief)
    return page


def history(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.shell(HISTORY))
    return found


def talk_until_a_new_course(page: Page) -> None:
    send(page, f"Here are my notes. {BEGINNING}")
    rest(page)
    for day in range(1, ENOUGH + 1):
        send(page, f"Day {day}. {NOTES}")
        rest(page)
        if page.locator("#course-2").is_visible():
            return
    pytest.fail(f"After {ENOUGH} messages it is still course 1.")


def test_a_full_window_becomes_a_new_course_and_the_talk_goes_on(chat: Page, brief: Stack) -> None:
    talk_until_a_new_course(chat)

    expect(chat.locator("#course-2")).to_contain_text("It began by itself")
    expect(chat.locator(".earlier-course")).to_have_count(1)
    assert chat.locator("#meter").get_attribute("data-level") in ("healthy", "unknown")
    recorded = answers(chat).count()
    ask(chat, "Say hello in one word.")
    assert answers(chat).count() > recorded

    found = history(brief)
    before = [(tokens, level) for course, tokens, level in found["readings"] if course == 1]
    after = [(tokens, level) for course, tokens, level in found["readings"] if course == 2]
    assert [number for number, _ in found["courses"]] == [1, 2]
    assert found["courses"][1][1] in ("auto", "recovery")
    assert {"caution", "critical"} & {level for _, level in before}
    assert found["prompts"] > 0
    assert after[0][0] < WINDOW / 2 < before[-1][0]
    assert {level for _, level in after} <= {"healthy", "unknown"}
    assert found["questions"] == 0
