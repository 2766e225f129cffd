"""The settings page for staff in a real browser: by keyboard, by dragging, and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.accessibility import violations
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
def signed_in(browser: Browser, stack: Stack, *, scripts: bool = True, width: int = 1280) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 800}, locale="en-US", java_script_enabled=scripts)
    page = context.new_page()
    sign_in(page, stack)
    page.goto(f"{stack.url}/settings/context/")
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


def test_a_strategy_is_dragged_to_its_place(page: Page, staffed: Stack, faults: list[str]) -> None:
    sign_in(page, staffed)
    page.goto(f"{staffed.url}/settings/context/")
    before = chain(page)

    page.locator(".chain-link").first.drag_to(page.locator(".chain-link").last, target_position={"x": 200, "y": 30})

    expect(page.get_by_role("button", name=f"Move {before[0]} up (place 5 of 5)")).to_be_visible()
    assert chain(page) == [*before[1:], before[0]]
    expect(page.get_by_role("heading", name="Not saved yet")).to_be_visible()


def test_a_limit_that_follows_the_default_is_off_and_comes_back(page: Page, staffed: Stack) -> None:
    sign_in(page, staffed)
    page.goto(f"{staffed.url}/settings/context/")
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


def test_everything_works_without_a_script(browser: Browser, staffed: Stack) -> None:
    with signed_in(browser, staffed, scripts=False) as page:
        page.get_by_role("button", name="Add an LLM type").click()
        page.locator("[name='per_llm[3].type']").fill("tiny")
        page.locator("[name='per_llm[3].limit']").fill("4,000")
        page.locator("[name='per_llm[3].limit']").press("Enter")

        expect(page.get_by_text("2 settings are changed.")).to_be_visible()
        expect(trail(page)).to_contain_text("per_llm.tiny.limit")


def test_nothing_stands_out_of_a_phones_screen(browser: Browser, staffed: Stack) -> None:
    with signed_in(browser, staffed, width=390) as page:
        page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")

        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong(page: Page, staffed: Stack, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    sign_in(page, staffed)
    page.goto(f"{staffed.url}/settings/context/")
    page.get_by_label("Goal").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Goal")).to_be_focused()
    refused = violations(page, "main")
    page.get_by_label("Goal").fill("0.6")
    page.get_by_role("button", name="What would have happened?").click()
    expect(page.get_by_role("heading", name="Not saved yet")).to_be_visible()

    assert refused + violations(page, "main") == []
