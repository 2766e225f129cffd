"""A person's API keys in a real browser: made and copied by keyboard, revoked, on a phone; forms without a script."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import page_without_script, sign_in
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


def make(page: Page, stack: Stack, name: str) -> None:
    page.goto(f"{stack.url}/settings/keys/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_role("heading", name=f"“{name}” is ready")).to_be_visible()


def status(stack: Stack, secret: str) -> int:
    """What a client gets that lists the models with this key."""
    return httpx.get(f"{stack.url}/v1/models", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_key_is_made_copied_shown_once_and_revoked_by_keyboard_and_its_pages_fit_a_phone(
    page: Page, peopled: Stack, faults: list[str]
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_in(page, peopled)
    open_the_form_by_keyboard(page)
    fill_in_the_form_by_keyboard(page)
    secret = copy_the_secret_by_keyboard(page)
    assert status(peopled, secret) == 200

    put_the_secret_away(page)
    revoke_by_keyboard(page)
    assert status(peopled, secret) == 401

    assert faults == []
    look_at_the_pages_on_a_phone(page, peopled)
    # To the browser's console the refusal of a wrong form is an error.
    faults.clear()


def open_the_form_by_keyboard(page: Page) -> None:
    page.get_by_label("Account", exact=True).press("Enter")
    page.get_by_role("link", name="API keys").press("Enter")
    page.get_by_role("link", name="New key").press("Enter")


def fill_in_the_form_by_keyboard(page: Page) -> None:
    page.get_by_label("Name").fill("My editor")
    expect(page.get_by_label("Writer")).to_be_hidden()
    page.get_by_label("Only these").press("Space")
    page.get_by_label("Writer").press("Space")
    page.get_by_label("Expires").select_option("90")
    page.get_by_label("Name").press("Enter")


def copy_the_secret_by_keyboard(page: Page) -> str:
    expect(page.get_by_role("heading", name="“My editor” is ready")).to_be_focused()
    # A script shows the buttons: without it nothing can be copied.
    expect(page.locator(".copy-button").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    secret = str(page.evaluate("() => navigator.clipboard.readText()"))
    assert SECRET.fullmatch(secret)
    expect(page.locator("#key-curl")).to_contain_text(f"Authorization: Bearer {secret}")
    expect(page.locator("#key-curl")).to_contain_text('"model": "writer"')
    return secret


def put_the_secret_away(page: Page) -> None:
    page.get_by_role("link", name="I have copied it").press("Enter")
    expect(page.get_by_role("listitem").filter(has_text="My editor")).to_contain_text("writer")
    assert not SECRET.search(page.content())
    page.wait_for_load_state()


def revoke_by_keyboard(page: Page) -> None:
    page.get_by_role("link", name="Revoke My editor").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("My editor")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Revoke My editor")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("“My editor” is revoked.")).to_be_visible()
    expect(page.get_by_role("link", name="Revoke My editor")).to_have_count(0)


def look_at_the_pages_on_a_phone(page: Page, stack: Stack) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    make(page, stack, "A" * 120)
    assert_readable(page)
    page.goto(f"{stack.url}/settings/keys/")
    assert_readable(page)
    page.goto(f"{stack.url}/settings/keys/new/")
    page.get_by_label("Only these").check()
    page.get_by_label("Name").fill("x")
    assert_readable(page)
    page.get_by_role("button", name="Create the key").click()
    expect(page.get_by_text("Choose a model, or all of them.")).to_be_visible()
    assert "aria-invalid" in page.evaluate("document.activeElement.getAttributeNames()")
    assert_readable(page)


def test_without_a_script_a_key_is_made_renamed_and_revoked_and_a_limit_set(browser: Browser, peopled: Stack) -> None:
    with page_without_script(browser) as page:
        sign_in(page, peopled)
        make(page, peopled, "Plain")
        assert SECRET.fullmatch(page.locator("#key-secret").inner_text())
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)
        page.get_by_role("link", name="I have copied it").click()
        rename_and_revoke(page)
        set_a_limit(page, peopled)


def rename_and_revoke(page: Page) -> None:
    page.get_by_role("link", name="Edit Plain").click()
    page.get_by_label("Name").fill("Plainer")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Revoke Plainer").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("“Plainer” is revoked.")).to_be_visible()


def set_a_limit(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/settings/context/")
    page.get_by_role("button", name="Add an LLM type").click()
    page.locator("[name='per_llm[3].type']").fill("tiny")
    page.locator("[name='per_llm[3].limit']").fill("4,000")
    page.locator("[name='per_llm[3].limit']").press("Enter")
    expect(page.get_by_text("2 settings are changed.")).to_be_visible()
    trail = page.locator("section").filter(has=page.get_by_role("heading", name="Who changed what"))
    expect(trail).to_contain_text("per_llm.tiny.limit")
