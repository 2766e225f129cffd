"""The settings page for staff in a real browser: by keyboard, by dragging, and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

AN_AGENT = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm = LLM.objects.create(provider=provider, model_id="small", context_length=8192)
Agent.objects.create(name="Pruner", slug="pruner", llm=llm)
"""


@pytest.fixture(scope="module")
def staffed(stack: Stack) -> Stack:
    """A Dominds with one agent."""
    stack.shell(AN_AGENT)
    return stack


@contextmanager
def without_script(browser: Browser, stack: Stack) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", java_script_enabled=False)
    page = context.new_page()
    sign_in(page, stack, "/settings/context/")
    yield page
    context.close()


def chain(page: Page) -> list[str]:
    return [link.input_value() for link in page.locator("#chain input").all()]


def trail(page: Page) -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name="Who changed what"))


def test_the_chain_is_ordered_by_keyboard_and_a_pruning_agent_chosen(
    page: Page, staffed: Stack, faults: list[str]
) -> None:
    sign_in(page, staffed)
    page.get_by_label("Account", exact=True).press("Enter")
    page.get_by_role("link", name="Context settings").press("Enter")
    expect(page.get_by_label("Who decides")).to_have_value("")
    expect(page.get_by_label("Who decides").locator("option").first).to_have_text("Same as current agent")

    page.get_by_role("button", name="Move hybrid up").press("Enter")
    expect(page.get_by_role("button", name="Move hybrid up (place 4 of 5)")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Move hybrid up (place 3 of 5)")).to_be_focused()
    page.get_by_label("Who decides").select_option("pruner")
    page.get_by_role("button", name="Save").press("Enter")

    expect(page.get_by_text("2 settings are changed.")).to_be_visible()
    expect(trail(page)).to_contain_text("breaking_strategy.chain_order")
    expect(trail(page)).to_contain_text("pruner")
    assert chain(page)[2] == "hybrid"
    expect(page.get_by_label("Who decides")).to_have_value("pruner")


def test_a_limit_that_follows_the_default_is_off_and_comes_back(page: Page, staffed: Stack) -> None:
    sign_in(page, staffed, "/settings/context/")
    follow, limit = page.get_by_label("follow default").first, page.locator("[name='per_llm[0].limit']")
    expect(limit).to_be_disabled()
    expect(limit).to_have_attribute("placeholder", "5,000")

    follow.uncheck()
    expect(limit).to_have_value("3500")
    limit.fill("4000")
    follow.check()
    expect(limit).to_be_disabled()
    follow.uncheck()

    expect(limit).to_have_value("4000")


def test_a_strategy_is_dragged_to_its_place_and_everybody_can_read_what_would_come_of_it(
    page: Page, staffed: Stack, faults: list[str]
) -> None:
    sign_in(page, staffed, "/settings/context/")
    before = chain(page)
    page.locator(".chain-link").first.drag_to(page.locator(".chain-link").last, target_position={"x": 200, "y": 30})
    expect(page.get_by_role("button", name=f"Move {before[0]} up (place 5 of 5)")).to_be_visible()
    assert chain(page) == [*before[1:], before[0]]
    expect(page.get_by_role("heading", name="Not saved yet")).to_be_visible()
    assert_readable(page)
    assert faults == []

    page.get_by_label("Goal").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Goal")).to_be_focused()
    # To the browser's console a refusal is an error.
    faults.clear()
    assert_readable(page)

    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
    assert_readable(page)


def test_everything_works_without_a_script(browser: Browser, staffed: Stack) -> None:
    with without_script(browser, staffed) as page:
        page.get_by_role("button", name="Add an LLM type").click()
        page.locator("[name='per_llm[3].type']").fill("tiny")
        page.locator("[name='per_llm[3].limit']").fill("4,000")
        page.locator("[name='per_llm[3].limit']").press("Enter")

        expect(page.get_by_text("2 settings are changed.")).to_be_visible()
        expect(trail(page)).to_contain_text("per_llm.tiny.limit")
