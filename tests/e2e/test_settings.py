"""The settings page for staff in a real browser: by keyboard and by dragging."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import PHONE, sign_in
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


def chain(page: Page) -> list[str]:
    return [link.input_value() for link in page.locator("#chain input").all()]


def test_staff_order_the_chain_by_keyboard_and_by_dragging_choose_a_pruning_agent_and_set_limits(
    page: Page, staffed: Stack, faults: list[str]
) -> None:
    sign_in(page, staffed)
    page.get_by_label("Account", exact=True).press("Enter")
    page.get_by_role("link", name="Context settings").press("Enter")
    order_by_keyboard(page)
    choose_a_pruning_agent(page)

    page.goto(f"{staffed.url}/settings/context/")
    leave_the_default_and_come_back(page)

    page.goto(f"{staffed.url}/settings/context/")
    order_by_dragging(page)
    read_what_would_come_of_it(page)
    assert faults == []
    be_refused(page)
    # To the browser's console a refusal is an error.
    faults.clear()


def order_by_keyboard(page: Page) -> None:
    page.get_by_role("button", name="Move hybrid up").press("Enter")
    expect(page.get_by_role("button", name="Move hybrid up (place 4 of 5)")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Move hybrid up (place 3 of 5)")).to_be_focused()


def choose_a_pruning_agent(page: Page) -> None:
    agent = page.get_by_label("Who decides")
    expect(agent).to_have_value("")
    expect(agent.locator("option").first).to_have_text("Same as current agent")
    agent.select_option("pruner")
    page.get_by_role("button", name="Save").press("Enter")

    expect(page.get_by_text("2 settings are changed.")).to_be_visible()
    trail = page.locator("section").filter(has=page.get_by_role("heading", name="Who changed what"))
    expect(trail).to_contain_text("breaking_strategy.chain_order")
    expect(trail).to_contain_text("pruner")
    assert chain(page)[2] == "hybrid"
    expect(agent).to_have_value("pruner")


def leave_the_default_and_come_back(page: Page) -> None:
    """A limit that follows the default is off."""
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


def order_by_dragging(page: Page) -> None:
    before = chain(page)
    page.locator(".chain-link").first.drag_to(page.locator(".chain-link").last, target_position={"x": 200, "y": 30})
    expect(page.get_by_role("button", name=f"Move {before[0]} up (place 5 of 5)")).to_be_visible()
    assert chain(page) == [*before[1:], before[0]]


def read_what_would_come_of_it(page: Page) -> None:
    expect(page.get_by_role("heading", name="Not saved yet")).to_be_visible()
    assert_readable(page)


def be_refused(page: Page) -> None:
    page.get_by_label("Goal").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Goal")).to_be_focused()
    assert_readable(page)

    page.set_viewport_size(PHONE)
    page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
    assert_readable(page)
