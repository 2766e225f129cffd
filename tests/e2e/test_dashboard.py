"""The first page in a real Chromium: it follows what happens, arrows walk it, and it fits a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, play, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

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
    stack.shell("from dialogs.models import Dialog; Dialog.objects.all().delete()")
    stack.shell(
        "from dialogs.models import Agent, Provider; Agent.objects.all().delete(); Provider.objects.all().delete()"
    )
    stack.shell(ROWS)
    # What lasts for seconds only is not seen by a page that listens later.
    with page.expect_websocket():
        sign_in(page, stack)
    page.wait_for_load_state()
    return page


def row(page: Page, title: str):  # type: ignore[no-untyped-def]  # a Locator
    return page.locator(".row").filter(has_text=title)


def test_it_follows_what_happens_and_an_open_menu_stays(home: Page, stack: Stack) -> None:
    usage = {"prompt_tokens": 930, "completion_tokens": 5}
    slowly = {"text": ["Good morning. "] * 20, "usage": usage, "delay": 0.4}
    play(stack, slowly, {"text": "Noted.", "usage": usage})
    expect(home.locator(".row-title").first).to_contain_text("With Gardener")
    row(home, "With Helper").get_by_label("Actions for With Helper").click()

    stack.shell(SAY)

    expect(row(home, "With Helper")).to_contain_text("answering", timeout=PATIENCE_MS)
    expect(home.locator("#strip-running")).to_contain_text("1 running")
    expect(row(home, "With Helper").get_by_text("Rename")).to_be_visible()
    expect(home.locator(".row-title").first).to_contain_text("With Helper")
    expect(row(home, "With Helper").locator(".row-meter")).to_contain_text("critical", timeout=PATIENCE_MS)
    expect(home.locator("#strip-critical")).to_contain_text("1 critical")
    expect(home.locator("#strip-running")).to_have_count(0, timeout=PATIENCE_MS)
    assert violations(home, "body") == []


def test_a_filter_cuts_the_list_that_still_follows_and_arrows_walk_all_of_it(home: Page, stack: Stack) -> None:
    home.get_by_label("Agent").select_option(label="Helper")
    expect(home.locator(".row")).to_have_count(1)
    assert "agent=" in home.url

    stack.shell(
        "from dialogs.models import Dialog; from dialogs.pages.writes import rename_dialog\n"
        "rename_dialog(dialog=Dialog.objects.get(title='With Helper'), title='Renamed elsewhere')"
    )
    expect(row(home, "Renamed elsewhere")).to_be_visible(timeout=PATIENCE_MS)
    expect(home.locator(".row")).to_have_count(1)
    home.get_by_role("link", name="Show all again").click()
    expect(home.locator(".row")).to_have_count(2)

    home.wait_for_load_state()
    home.locator("#search").focus()
    home.keyboard.press("ArrowDown")
    expect(home.locator(".row-title").first).to_be_focused()
    home.keyboard.press("ArrowDown")
    expect(home.locator(".row-title").nth(1)).to_be_focused()
    home.keyboard.press("Enter")
    expect(home.locator("#dialog-title")).to_have_text("Renamed elsewhere")


def test_on_a_phone_in_the_dark_a_dialog_begins_from_a_list_that_was_emptied_meanwhile(
    home: Page, stack: Stack
) -> None:
    home.set_viewport_size({"width": 360, "height": 740})
    home.emulate_media(color_scheme="dark")
    home.reload()
    expect(home.locator(".row-meter .meter-bar").first).to_be_visible()
    assert home.evaluate("document.documentElement.scrollWidth") == 360
    assert violations(home, "body") == []

    home.wait_for_load_state()
    stack.shell("from dialogs.models import Dialog; Dialog.objects.all().delete()")
    expect(home.get_by_role("heading", name="Begin a dialog")).to_be_visible(timeout=PATIENCE_MS)
    home.locator(".ways-in").get_by_role("button", name="New dialog").click()
    expect(home.get_by_role("heading", name="New dialog")).to_be_visible()
