"""What a person does in the browser, in the words of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.stack import Stack

PASSWORD = "alice-pass-1"
# The tiny model shares two cores with everything else.
PATIENCE_MS = 180_000
# What a message may have here: to fill a field with two million characters takes Chromium longer than with one.
MOST_CHARS = 1_000_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
# Neither the page nor what scrolls in it, up and down.
NO_WIDER = """() => document.documentElement.scrollWidth <= innerWidth
    && [...document.querySelectorAll(".scroller, .drawer")].every(one => one.scrollWidth <= one.clientWidth)"""
BEGIN = """
from django.contrib.auth.models import User
from dialogs.llms.reads import choosable_agents
from dialogs.pages.writes import create_dialog
print(create_dialog(owner=User.objects.get(username="admin"), agent=choosable_agents().get()).pk)
"""


def sign_in_by_password(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("heading", name="Dialogs")).to_be_visible()


def sign_in(page: Page, stack: Stack, path: str = "/") -> None:
    """Come to a page as who signed in another day."""
    page.context.add_cookies([{"name": "sessionid", "value": stack.session_of("admin"), "url": stack.url}])
    page.goto(stack.url + path)


@contextmanager
def page_without_script(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", java_script_enabled=False)
    yield context.new_page()
    context.close()


def begin_dialog(page: Page, stack: Stack) -> None:
    """Come to the page of a new dialog with the only agent."""
    sign_in(page, stack, f"/dialogs/{stack.shell(BEGIN)}/")
    expect(composer(page)).to_be_visible()
    page.wait_for_load_state()


def composer(page: Page) -> Locator:
    return page.locator("#composer-text")


def answers(page: Page) -> Locator:
    return page.locator(".message-row.assistant:not(.live)")


def send(page: Page, text: str) -> None:
    # Enter means "send" only once the page's scripts have run.
    page.wait_for_load_state()
    composer(page).fill(text)
    composer(page).press("Enter")
    expect(page.locator(".message-row.user").filter(has_text=text).first).to_be_visible()


def get_answer(page: Page, text: str) -> None:
    """Send, and wait until the answer is recorded. The agent may be busy again, with what Dominds asked of it."""
    count = answers(page).count()
    send(page, text)
    expect(answers(page).nth(count)).to_be_visible(timeout=PATIENCE_MS)


def rest(page: Page) -> None:
    """Wait until the agent does nothing more."""
    expect(page.locator("#turn")).not_to_have_attribute("data-busy", "", timeout=PATIENCE_MS)


def ask(page: Page, text: str) -> None:
    """Send, and wait until the answer is recorded and nothing more comes of it."""
    get_answer(page, text)
    rest(page)


def begin_long_answer(page: Page, text: str) -> None:
    """Send something that takes long, and wait until words stream."""
    send(page, text)
    expect(page.locator("#live-block-0")).not_to_be_empty(timeout=PATIENCE_MS)


def play(stack: Stack, *steps: dict[str, Any]) -> None:
    """Give the scripted provider another script, from its beginning."""
    (stack.data_dir / "script.json").write_text(json.dumps({"steps": steps}))
    (stack.data_dir / "script.json.requests.jsonl").unlink(missing_ok=True)
