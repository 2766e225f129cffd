"""A new course begun by hand, with the real tiny model: what is carried over is shown, taken away and left."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, answers, ask, begin_dialog
from tests.stack import Stack

pytestmark = pytest.mark.e2e

RULE = "You must always call the boat Esmeralda."


def test_a_new_course_carries_the_rule_over_goes_on_and_leads_back(page: Page, demo: Stack, faults: list[str]) -> None:
    begin_dialog(page, demo)
    ask(page, RULE)
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Begin a new course…").click()
    page.get_by_role("button", name="Begin a new course").click()

    head = page.locator("#course-2")
    expect(head).to_contain_text("handover ≈")
    head.get_by_text("Show the handover").click()
    expect(head.locator(".course-handover .plain")).to_contain_text(RULE)
    head.get_by_role("button", name="Take the handover away").click()
    expect(head).to_contain_text("a handover, which you took away", timeout=PATIENCE_MS)

    page.wait_for_load_state()
    ask(page, "Say hello in one word.")
    expect(page.locator(".earlier-course")).to_have_count(1)
    page.get_by_role("link", name="Back to the earlier course…").click()
    page.get_by_role("button", name="Go back").click()
    expect(page.locator("#course-2")).to_have_count(0)
    expect(answers(page)).to_have_count(1)

    look_after_the_rules(page)


def look_after_the_rules(page: Page) -> None:
    """What was laid down is seen, added and taken back on a page of its own."""
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Standing rules").click()
    rules = page.locator(".archive-item")
    expect(rules).to_have_count(1)
    expect(rules).to_contain_text(RULE)

    page.get_by_label("New rule").fill("Answer in one sentence.")
    page.get_by_role("button", name="Add").click()
    expect(rules.first).to_contain_text("Answer in one sentence.")
    rules.filter(has_text=RULE).get_by_role("button", name="Take back").click()

    expect(page.get_by_role("heading", name="Taken back")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    rules.first.get_by_text("Edit").click()
    assert violations(page, ".archive") == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
