"""The first page in a real Chromium: it follows what happens, arrows walk it, and it fits a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import NO_WIDER, PATIENCE_MS, play, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

AWAY = "from dialogs.models import Dialog; Dialog.objects.all().delete()"
RENAMED = """
from dialogs.models import Dialog
from dialogs.pages.writes import rename_dialog
rename_dialog(dialog=Dialog.objects.get(title="With Helper"), title="Renamed elsewhere")
"""
ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.pages.writes import create_dialog
me = User.objects.get(username="admin")
provider = Provider.objects.create(name="local", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=1000, context_length_source="server")
for name in ("Helper", "Gardener"):
    agent = Agent.objects.create(name=name, slug=name.lower(), llm=llm)
    dialog = create_dialog(owner=me, agent=agent)
    Dialog.objects.filter(pk=dialog.pk).update(title=f"With {name}")
"""
SAY = """
from dialogs.models import Dialog
from dialogs.turns.writes.messages import post_message
dialog = Dialog.objects.get(title="With Helper")
post_message(dialog=dialog, content="Hello there")
Dialog.objects.filter(pk=dialog.pk).update(title="With Helper")
"""


@pytest.fixture
def home(page: Page, stack: Stack, faults: list[str]) -> Page:
    stack.shell(ROWS)
    # What lasts for seconds only is not seen by a page that listens later.
    with page.expect_websocket():
        sign_in(page, stack)
    page.wait_for_load_state()
    return page


def row(page: Page, title: str) -> Locator:
    return page.locator(".row").filter(has_text=title)


def test_it_follows_what_happens_is_filtered_and_walked_by_arrows_and_begins_a_dialog_on_a_phone(
    home: Page, stack: Stack
) -> None:
    follow_an_answer_with_a_menu_open(home, stack)
    filter_what_still_follows(home, stack)
    rename_by_keyboard(home)
    walk_by_arrows(home)

    with home.expect_websocket():
        home.goto(stack.url)
    read_on_a_phone_in_the_dark(home)
    begin_from_a_list_that_was_emptied(home, stack)


def follow_an_answer_with_a_menu_open(page: Page, stack: Stack) -> None:
    usage = {"prompt_tokens": 930, "completion_tokens": 5}
    slowly = {"text": ["Good morning. "] * 20, "usage": usage, "delay": 0.2}
    play(stack, slowly, {"text": "Noted.", "usage": usage})
    expect(page.locator(".row-title").first).to_contain_text("With Gardener")
    row(page, "With Helper").get_by_label("Actions for With Helper").click()

    stack.shell(SAY)

    expect(row(page, "With Helper")).to_contain_text("answering", timeout=PATIENCE_MS)
    expect(page.locator("#strip-running")).to_contain_text("1 running")
    expect(row(page, "With Helper").get_by_text("Rename")).to_be_visible()
    expect(page.locator(".row-title").first).to_contain_text("With Helper")
    expect(row(page, "With Helper").locator(".row-meter")).to_contain_text("critical", timeout=PATIENCE_MS)
    expect(page.locator("#strip-critical")).to_contain_text("1 critical")
    expect(page.locator("#strip-running")).to_have_count(0, timeout=PATIENCE_MS)
    assert violations(page, "body") == []
    page.keyboard.press("Escape")


def filter_what_still_follows(page: Page, stack: Stack) -> None:
    page.get_by_label("Agent").select_option(label="Helper")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator("#live-region")).to_have_text("1 dialog is shown.")
    assert "agent=" in page.url

    stack.shell(RENAMED)
    expect(row(page, "Renamed elsewhere")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".row")).to_have_count(1)
    page.get_by_role("link", name="Show all again").click()
    expect(page.locator(".row")).to_have_count(2)
    page.wait_for_load_state()


def rename_by_keyboard(page: Page) -> None:
    page.get_by_label("Actions for With Gardener").press("Enter")
    row(page, "With Gardener").get_by_text("Rename").press("Enter")
    expect(page.get_by_label("Name of the dialog")).to_be_focused()
    page.keyboard.type("Of the Gardener")
    page.keyboard.press("Enter")
    expect(row(page, "Of the Gardener").locator(".row-title")).to_be_focused()
    expect(page.locator(".row-title").get_by_text("With Gardener")).to_have_count(0)


def walk_by_arrows(page: Page) -> None:
    page.locator("#search").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".row-title").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".row-title").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#dialog-title")).to_have_text("Of the Gardener")


def read_on_a_phone_in_the_dark(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".row-meter .meter-bar").first).to_be_visible()
    assert page.evaluate(NO_WIDER)
    assert violations(page, "body") == []
    page.wait_for_load_state()


def begin_from_a_list_that_was_emptied(page: Page, stack: Stack) -> None:
    stack.shell(AWAY)
    expect(page.get_by_role("heading", name="Begin a dialog")).to_be_visible(timeout=PATIENCE_MS)
    page.locator(".ways-in").get_by_role("button", name="New dialog").click()
    expect(page.get_by_role("heading", name="New dialog")).to_be_visible()
