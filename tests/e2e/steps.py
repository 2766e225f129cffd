"""What a person does in the browser, in the words of the tests."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.stack import Stack

PASSWORD = "alice-pass-1"
# The tiny model shares two cores with everything else.
PATIENCE_MS = 90_000


def sign_in(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("heading", name="Dialogs")).to_be_visible()


def begin_dialog(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.get_by_role("button", name="New dialog").first.click()
    expect(composer(page)).to_be_visible()


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


def ask(page: Page, text: str) -> None:
    """Send, and wait until the answer is recorded and the turn is over."""
    count = answers(page).count()
    send(page, text)
    expect(answers(page)).to_have_count(count + 1, timeout=PATIENCE_MS)
    expect(page.locator("#turn")).not_to_have_attribute("data-busy", "", timeout=PATIENCE_MS)


def begin_long_answer(page: Page, text: str) -> None:
    """Send something that takes long, and wait until words stream."""
    send(page, text)
    expect(page.locator("#live-block-0")).not_to_be_empty(timeout=PATIENCE_MS)
