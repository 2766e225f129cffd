"""From a server on this machine to a first answer, as staff do it, by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.steps import DESK, NO_WIDER, ask, sign_in
from tests.stack import Stack
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = pytest.mark.e2e


@pytest.fixture
def studio() -> Iterator[tuple[LMStudioStandin, str]]:
    standin = LMStudioStandin(model="gemma-4", key="a-token", answer="Hello from the studio.")
    with serving(standin.app()) as url:
        yield standin, url


def test_a_server_that_is_not_there_is_explained_on_a_phone_and_one_that_is_gives_a_model_to_talk_with(
    page: Page, stack: Stack, studio: tuple[LMStudioStandin, str], faults: list[str]
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark")
    sign_in(page, stack, "/connect/?offer=openrouter")
    try_in_vain(page)

    page.set_viewport_size(DESK)
    page.goto(f"{stack.url}/dialogs/new/")
    page.get_by_role("link", name="Connect a server").first.press("Enter")
    find_by_keyboard(page, studio[1])
    add_by_keyboard(page)

    ask(page, "Hi there.")
    expect(page.locator(".message-row.assistant")).to_contain_text("Hello from the studio.")
    assert studio[0].largest > 0


def try_in_vain(page: Page) -> None:
    page.get_by_label("Address").fill("http://127.0.0.1:9")
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("heading", name="This does not work yet")).to_be_focused()
    expect(page.get_by_text("Does the server run?")).to_be_in_viewport()
    assert page.evaluate(NO_WIDER)


def find_by_keyboard(page: Page, url: str) -> None:
    address = page.get_by_label("Address")
    expect(address).to_have_value("http://127.0.0.1:1234")
    address.fill(url)
    address.press("Enter")
    expect(page.get_by_text("The server wants a key")).to_be_visible()
    page.get_by_label("Key").fill("a-token")
    page.get_by_label("Key").press("Enter")
    expect(page.get_by_text("Window: 4,096 tokens")).to_be_visible()
    expect(page.get_by_label("Key")).to_have_value("a-token")


def add_by_keyboard(page: Page) -> None:
    expect(page.get_by_role("heading", name="Models")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Add gemma-4")).to_be_focused()
    page.get_by_role("button", name="Add gemma-4").press("Enter")
    begin = page.get_by_role("button", name="New dialog with gemma-4")
    expect(begin).to_be_focused()
    begin.press("Enter")
