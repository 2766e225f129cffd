"""The sample and its tour in a real Chromium, without typing; the demo model plays it in `test_demo_dialog.py`."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import DESK, PATIENCE_MS, PHONE, play, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=896, context_length_source="server")
Agent.objects.create(name="Helper", slug="helper", llm=llm, max_output_tokens=128)
"""
EMPTY = """
from dialogs.models import LLM, Dialog
Dialog.objects.all().delete()
LLM.objects.filter(model_id="tiny").update(context_length={window})
"""
SENT = """
from dialogs.context.estimate import present_context
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
context = present_context(dialog_to_drive(Dialog.objects.latest("active_at").pk))
print("\\n".join(piece.content for piece in context.pieces))
"""
SHORT = {"text": "The page opens in 0.3 s.", "usage": {"prompt_tokens": 480, "completion_tokens": 9}, "delay": 0.2}
SUMMED_UP = {"text": "The index comes on Wednesday.", "usage": {"prompt_tokens": 520, "completion_tokens": 8}}
STOPS = ("meter", "rise", "compaction", "divider", "lost", "undo", "redo", "archive", "recall")


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


def first_page(page: Page, scripted: Stack, *, window: int = 896) -> None:
    """Empty; whoever answers has a window of so many tokens."""
    scripted.shell(EMPTY.format(window=window))
    play(scripted, SHORT, SUMMED_UP)
    sign_in(page, scripted)


def begin(page: Page) -> None:
    page.get_by_role("button", name="Try a sample").click()
    at(page, "meter")


def at(page: Page, stop: str) -> None:
    """Wait until the tour stands there, and nobody works."""
    expect(page.locator(f'#tour[data-stop="{stop}"]')).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("#tour-next:not([aria-disabled])")).to_be_visible(timeout=PATIENCE_MS)


def go_on(page: Page, stop: str) -> None:
    # A press is the script's only once the page's scripts have run.
    page.wait_for_load_state()
    page.locator("#tour-next").click()
    at(page, stop)


def forgotten(sent: str, *facts: str) -> list[str]:
    return [one for one in facts if one not in sent]


def test_every_stop_is_reached_with_one_key_shows_what_it_speaks_of_and_can_be_read_by_everybody(
    page: Page, scripted: Stack, faults: list[str]
) -> None:
    first_page(page, scripted)
    expect(page.locator(".ways-in .button")).to_have_text(["Connect a server", "Try a sample", "New dialog"])
    assert_readable(page, "body")
    begin(page)
    expect(page.locator("#rows")).to_contain_text("I changed my mind")

    shown, sent = {}, {}
    for stop, then in zip(STOPS, (*STOPS[1:], ""), strict=True):
        look_at(page, stop)
        shown[stop], sent[stop] = page.locator(".tour-thing").first.inner_text(), scripted.shell(SENT)
        press_the_key(page, then)

    expect(page.locator("#tour")).to_be_hidden()
    assert_each_spoke_of_its_thing(shown)
    # The rule and the change of mind still reach the model.
    assert forgotten(sent["lost"], "Never touch the payments tables", "on Thursday at 10:00") == []
    assert "They were good" not in sent["lost"]


def look_at(page: Page, stop: str) -> None:
    """From its second stop to the archive the tour is taken on a phone, where the note is in sight."""
    if stop == "rise":
        assert_readable(page, "body")
        page.set_viewport_size(PHONE)
        assert_readable(page, "body")
    if stop == "archive":
        expect(page.locator(".archive-losses[open]")).to_be_in_viewport()
        expect(page.locator("#tour-next")).to_be_in_viewport()
        page.set_viewport_size(DESK)


def press_the_key(page: Page, then: str) -> None:
    page.wait_for_load_state()
    page.locator("#tour-next").press("Enter")
    if then:
        at(page, then)


def assert_each_spoke_of_its_thing(shown: dict[str, str]) -> None:
    assert "480 / 896" in shown["rise"]
    assert "Context compacted" in shown["divider"]
    assert "no longer seen" in shown["lost"]
    assert "Undo" in shown["undo"]
    assert "Redo" in shown["redo"]
    assert "only here" in shown["archive"]
    assert "pinned" in shown["recall"]


def test_where_the_window_is_far_from_full_the_sample_is_compacted_at_a_press_and_its_tour_can_be_closed(
    page: Page, scripted: Stack, faults: list[str]
) -> None:
    first_page(page, scripted, window=32_768)
    begin(page)
    stand_beside_the_thing_on_a_desk_only(page)
    for stop in ("rise", "compaction"):
        go_on(page, stop)
    be_compacted_at_a_press(page)
    close_the_tour(page)


def stand_beside_the_thing_on_a_desk_only(page: Page) -> None:
    """On a phone the note stands above the composer."""
    expect(page.locator(".tour-note.tour-beside")).to_be_visible()
    page.set_viewport_size(PHONE)
    expect(page.locator(".tour-note:not(.tour-beside)")).to_be_visible()
    page.set_viewport_size(DESK)


def be_compacted_at_a_press(page: Page) -> None:
    assert "far from full" in page.locator("#tour-words").inner_text()
    page.locator("#tour-next").click()
    expect(page.locator(".divider").last).to_contain_text("Context compacted", timeout=PATIENCE_MS)
    at(page, "compaction")
    go_on(page, "divider")


def close_the_tour(page: Page) -> None:
    """What is left is an ordinary dialog."""
    page.get_by_role("button", name="Close the tour").click()
    expect(page.locator("#tour")).to_be_hidden()
    page.reload()
    expect(page.locator("#composer-text")).to_be_visible()
    expect(page.locator("#tour")).to_be_hidden()
