"""A person's API keys in a real browser: made and copied by keyboard, revoked, on a phone and without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

AN_AGENT = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm = LLM.objects.create(provider=provider, model_id="small", context_length=8192)
Agent.objects.create(name="Writer", slug="writer", llm=llm)
"""
SECRET = re.compile(r"dk-[\w-]{43}")


@pytest.fixture(scope="module")
def peopled(stack: Stack) -> Stack:
    """A Dominds with one agent."""
    stack.shell(AN_AGENT)
    return stack


@contextmanager
def signed_in(browser: Browser, stack: Stack, *, scripts: bool = True, width: int = 1280) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 800}, locale="en-US", java_script_enabled=scripts)
    page = context.new_page()
    sign_in(page, stack)
    yield page
    context.close()


def make(page: Page, stack: Stack, name: str) -> None:
    page.goto(f"{stack.url}/settings/keys/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_role("heading", name=f"“{name}” is ready")).to_be_visible()


def status(stack: Stack, secret: str) -> int:
    """What a client gets that lists the models with this key."""
    return httpx.get(f"{stack.url}/v1/models", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_key_is_made_and_copied_by_keyboard_and_shown_once(page: Page, peopled: Stack, faults: list[str]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_in(page, peopled)
    page.get_by_label("Account", exact=True).press("Enter")
    page.get_by_role("link", name="API keys").press("Enter")
    page.get_by_role("link", name="New key").press("Enter")

    page.get_by_label("Name").fill("My editor")
    expect(page.get_by_label("Writer")).to_be_hidden()
    page.get_by_label("Only these").press("Space")
    page.get_by_label("Writer").press("Space")
    page.get_by_label("Expires").select_option("90")
    page.get_by_label("Name").press("Enter")

    expect(page.get_by_role("heading", name="“My editor” is ready")).to_be_focused()
    # A script shows the buttons: without it nothing can be copied.
    expect(page.locator(".copy-button").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    secret = page.evaluate("() => navigator.clipboard.readText()")
    assert SECRET.fullmatch(secret)
    expect(page.locator("#key-curl")).to_contain_text(f"Authorization: Bearer {secret}")
    expect(page.locator("#key-curl")).to_contain_text('"model": "writer"')
    assert status(peopled, secret) == 200

    page.get_by_role("link", name="I have copied it").press("Enter")
    expect(page.get_by_role("listitem").filter(has_text="My editor")).to_contain_text("writer")
    assert not SECRET.search(page.content())


def test_a_key_is_revoked_after_a_question(page: Page, peopled: Stack, faults: list[str]) -> None:
    sign_in(page, peopled)
    make(page, peopled, "Lost phone")
    secret = page.locator("#key-secret").inner_text()
    page.get_by_role("link", name="I have copied it").click()

    page.get_by_role("link", name="Revoke Lost phone").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Lost phone")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Revoke Lost phone")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()

    expect(page.get_by_text("“Lost phone” is revoked.")).to_be_visible()
    expect(page.get_by_role("link", name="Revoke Lost phone")).to_have_count(0)
    assert status(peopled, secret) == 401


def test_a_wrong_form_keeps_what_was_typed(page: Page, peopled: Stack, faults: list[str]) -> None:
    sign_in(page, peopled)
    page.goto(f"{peopled.url}/settings/keys/new/")
    page.get_by_label("Name").fill("Yesterday's")
    page.get_by_label("Expires").select_option("date")
    page.get_by_label("Last day").fill("2020-01-01")
    page.get_by_role("button", name="Create the key").click()

    expect(page.get_by_text("must be in the future")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("Yesterday's")
    expect(page.get_by_label("Last day")).to_have_value("2020-01-01")


def test_everything_works_without_a_script(browser: Browser, peopled: Stack) -> None:
    with signed_in(browser, peopled, scripts=False) as page:
        make(page, peopled, "Plain")
        assert SECRET.fullmatch(page.locator("#key-secret").inner_text())
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)
        page.get_by_role("link", name="I have copied it").click()
        page.get_by_role("link", name="Edit Plain").click()
        page.get_by_label("Name").fill("Plainer")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="Revoke Plainer").click()
        page.get_by_role("button", name="Revoke").click()

        expect(page.get_by_text("“Plainer” is revoked.")).to_be_visible()


def test_nothing_stands_out_of_a_phones_screen(browser: Browser, peopled: Stack) -> None:
    with signed_in(browser, peopled, width=360) as page:
        make(page, peopled, "A" * 120)
        wide = [page.evaluate("document.documentElement.scrollWidth - innerWidth")]
        for path in ("", "new/"):
            page.goto(f"{peopled.url}/settings/keys/{path}")
            if path:
                page.get_by_label("Only these").check()
            wide.append(page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    assert wide == [0, 0, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong(page: Page, peopled: Stack, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    sign_in(page, peopled)
    make(page, peopled, f"In the {scheme}")
    found = violations(page, "main")
    page.goto(f"{peopled.url}/settings/keys/")
    found += violations(page, "main")
    page.goto(f"{peopled.url}/settings/keys/new/")
    page.get_by_label("Only these").check()
    page.get_by_label("Name").fill("x")
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_text("Choose a model, or all of them.")).to_be_visible()

    assert found + violations(page, "main") == []
