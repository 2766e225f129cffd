"""What axe finds on each page that people come to: light and dark, on a desk and on a phone, in both languages."""

from __future__ import annotations

import pytest
from playwright.sync_api import ConsoleMessage, Page, ViewportSize, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import ask, begin_dialog, play
from tests.e2e.test_compaction import HISTORY, ROWS
from tests.stack import Stack

pytestmark = pytest.mark.e2e

PAGES = (
    *("", "connect/", "settings/context/", "settings/keys/", "settings/keys/new/", "proposals/"),
    *("preferences/compaction/", "events/", "events/counts/", "insights/", "insights/what-if/", "cleanup/"),
    *("account/password/", "?show=archived", "?show=trash", "?q=nothing"),
)
OF_A_DIALOG = ("", "settings/")
DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
ANSWER = {"text": "A `short` answer.\n\n- one\n- two", "usage": {"prompt_tokens": 900, "completion_tokens": 5}}


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


@pytest.fixture
def new(page: Page, scripted: Stack) -> Page:
    play(scripted, ANSWER, ANSWER)
    begin_dialog(page, scripted)
    return page


def wrong(page: Page, address: str) -> list[str]:
    answer = page.goto(address)
    assert answer is not None
    assert answer.ok, address
    return [f"{address}: {one}" for one in violations(page, "body")]


def test_axe_finds_nothing_wrong_with_a_new_dialog_and_with_its_panel(new: Page, scripted: Stack) -> None:
    assert violations(new, "body") == []

    scripted.shell(HISTORY)
    ask(new, "Hello")
    new.get_by_role("button", name="Context health: show every number").click()
    expect(new.locator("#budget")).to_be_visible()
    assert violations(new, "body") == []


@pytest.fixture
def said(page: Page) -> list[str]:
    """What any page writes to the console, of any kind: a policy that our own pages break would be told there."""
    found: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        found.append(f"{page.url}: {message.text}")

    page.on("console", listen)
    return found


@pytest.mark.parametrize(("scheme", "size", "language"), [("light", DESK, "en"), ("dark", PHONE, "zh-hans")])
def test_axe_finds_nothing_wrong_with_any_page_and_none_writes_to_the_console(
    said: list[str], new: Page, scripted: Stack, scheme: str, size: ViewportSize, language: str
) -> None:
    ask(new, "Hello")
    dialog = new.url.split("?")[0]
    new.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    new.set_viewport_size(size)
    new.context.add_cookies([{"name": "django_language", "value": language, "url": scripted.url}])

    found = [one for path in PAGES for one in wrong(new, f"{scripted.url}/{path}")]
    found += [one for path in OF_A_DIALOG for one in wrong(new, dialog + path)]
    new.context.clear_cookies()

    assert found + wrong(new, f"{scripted.url}/login/") == []
    assert said == []
