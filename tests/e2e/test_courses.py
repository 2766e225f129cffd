"""A new course begun by hand, with the real tiny model: what is carried over is shown, taken away and left."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, answers, ask, begin_dialog, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

RULE = "You must always call the boat Esmeralda."


@pytest.fixture
def chat(page: Page, demo: Stack, faults: list[str]) -> Page:
    """The model was told a rule, and a new course has begun."""
    sign_in(page, demo)
    begin_dialog(page, demo)
    ask(page, RULE)
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Begin a new course…").click()
    page.get_by_role("button", name="Begin a new course").click()
    expect(page.locator("#course-2")).to_be_visible()
    return page


def test_the_rule_is_carried_over_shown_and_can_be_taken_away(chat: Page) -> None:
    head = chat.locator("#course-2")

    expect(head).to_contain_text("handover ≈")
    head.get_by_text("Show the handover").click()
    expect(head.locator(".course-handover .plain")).to_contain_text(RULE)
    head.get_by_role("button", name="Take the handover away").click()
    expect(head).to_contain_text("a handover, which you took away", timeout=PATIENCE_MS)


def test_the_talk_goes_on_and_leads_back(chat: Page) -> None:
    ask(chat, "Say hello in one word.")
    expect(chat.locator(".earlier-course")).to_have_count(1)

    chat.get_by_role("link", name="Back to the earlier course…").click()
    chat.get_by_role("button", name="Go back").click()

    expect(chat.locator("#course-2")).to_have_count(0)
    expect(answers(chat)).to_have_count(1)


def test_what_was_laid_down_is_seen_added_and_taken_back_on_a_page_of_its_own(chat: Page) -> None:
    chat.get_by_label("Dialog actions").click()
    chat.get_by_role("link", name="Standing rules").click()
    rules = chat.locator(".archive-item")
    expect(rules).to_have_count(1)
    expect(rules).to_contain_text(RULE)

    chat.get_by_label("New rule").fill("Answer in one sentence.")
    chat.get_by_role("button", name="Add").click()
    expect(rules.first).to_contain_text("Answer in one sentence.")
    rules.filter(has_text=RULE).get_by_role("button", name="Take back").click()

    expect(chat.get_by_role("heading", name="Taken back")).to_be_visible()
    chat.emulate_media(color_scheme="dark")
    chat.set_viewport_size({"width": 390, "height": 844})
    rules.first.get_by_text("Edit").click()
    assert violations(chat, ".archive") == []
    assert chat.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
