"""The sample and its tour in a real Chromium, without typing: with the scripted provider, and with the demo model."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import PATIENCE_MS, answers, play, sign_in
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
from dialogs.context.present import present_context
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
context = present_context(dialog_to_drive(Dialog.objects.latest("active_at").pk))
print("\\n".join(piece.content for piece in context.pieces))
"""
SHORT = {"text": "The page opens in 0.3 s.", "usage": {"prompt_tokens": 480, "completion_tokens": 9}, "delay": 0.2}
SUMMED_UP = {"text": "The index comes on Wednesday.", "usage": {"prompt_tokens": 520, "completion_tokens": 8}}
STOPS = ("meter", "rise", "compaction", "divider", "lost", "undo", "redo", "archive", "recall")
PHONE = ViewportSize(width=390, height=844)


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


def first_page(page: Page, scripted: Stack, *, window: int = 896) -> Page:
    """Empty; whoever answers has a window of so many tokens."""
    scripted.shell(EMPTY.format(window=window))
    play(scripted, SHORT, SUMMED_UP)
    sign_in(page, scripted)
    return page


@pytest.fixture
def small(page: Page, scripted: Stack, faults: list[str]) -> Page:
    assert faults == []
    return first_page(page, scripted)


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


def go_to(page: Page, stop: str) -> None:
    begin(page)
    for one in STOPS[1 : STOPS.index(stop) + 1]:
        go_on(page, one)


def words(page: Page) -> str:
    return page.locator("#tour-words").inner_text()


def test_every_stop_is_reached_with_one_key_and_shows_what_it_speaks_of(small: Page, scripted: Stack) -> None:
    expect(small.locator(".ways-in .button")).to_have_text(["Connect a server", "Try a sample", "New dialog"])
    begin(small)
    expect(small.locator("#rows")).to_contain_text("I changed my mind")
    shown, sent = {}, {}
    for stop, then in zip(STOPS, (*STOPS[1:], ""), strict=True):
        shown[stop], sent[stop] = small.locator(".tour-thing").first.inner_text(), scripted.shell(SENT)
        small.wait_for_load_state()
        small.locator("#tour-next").press("Enter")
        if then:
            at(small, then)

    expect(small.locator("#tour")).to_be_hidden()
    assert "480 / 896" in shown["rise"]
    assert "Context compacted" in shown["divider"]
    assert "no longer seen" in shown["lost"]
    assert "Undo" in shown["undo"]
    assert "Redo" in shown["redo"]
    assert "only here" in shown["archive"]
    assert "pinned" in shown["recall"]
    # The rule and the change of mind still reach the model.
    assert [one for one in ("Never touch the payments tables", "on Thursday at 10:00") if one not in sent["lost"]] == []
    assert "They were good" not in sent["lost"]


def test_a_tour_that_is_closed_leaves_an_ordinary_dialog(small: Page) -> None:
    begin(small)
    # The note stands beside the thing on a desk, and above the composer on a phone.
    expect(small.locator(".tour-note.tour-beside")).to_be_visible()
    small.set_viewport_size(PHONE)
    expect(small.locator(".tour-note:not(.tour-beside)")).to_be_visible()

    small.get_by_role("button", name="Close the tour").click()

    expect(small.locator("#tour")).to_be_hidden()
    small.reload()
    expect(small.locator("#composer-text")).to_be_visible()
    expect(small.locator("#tour")).to_be_hidden()


def test_where_the_window_is_far_from_full_the_sample_is_compacted_at_a_press(page: Page, scripted: Stack) -> None:
    first_page(page, scripted, window=32_768)
    go_to(page, "compaction")
    assert "far from full" in words(page)

    page.locator("#tour-next").click()

    expect(page.locator(".divider").last).to_contain_text("Context compacted", timeout=PATIENCE_MS)
    at(page, "compaction")
    go_on(page, "divider")


def test_everybody_can_read_the_tour_and_on_a_phone_its_note_is_in_sight_in_the_archive_too(small: Page) -> None:
    assert_readable(small, "body")
    go_to(small, "rise")
    assert_readable(small, "body")
    small.set_viewport_size(PHONE)
    assert_readable(small, "body")

    for stop in STOPS[STOPS.index("rise") + 1 : STOPS.index("archive") + 1]:
        go_on(small, stop)
    expect(small.locator(".archive-losses[open]")).to_be_in_viewport()
    expect(small.locator("#tour-next")).to_be_in_viewport()


def test_the_demo_model_plays_the_whole_tour(page: Page, demo: Stack, faults: list[str]) -> None:
    sign_in(page, demo)
    begin(page)
    expect(page.locator("#meter")).to_contain_text("/ 896")
    for stop in STOPS[1:5]:
        go_on(page, stop)
    sent = demo.shell(SENT)
    for stop in STOPS[5:]:
        go_on(page, stop)

    assert [one for one in ("Never touch the payments tables", "on Thursday at 10:00") if one not in sent] == []
    expect(answers(page).last).to_contain_text("demo")
    assert (
        demo.shell("from health.models import CompactionRun as R; print(R.objects.earliest('pk').trigger)")
        == "pre_request"
    )


def test_in_chinese_the_demo_model_plays_it_too(page: Page, demo: Stack, faults: list[str]) -> None:
    demo.shell("from dialogs.models import Dialog; Dialog.objects.all().delete()")
    sign_in(page, demo)
    page.locator('summary[aria-label="Language"]').click()
    page.get_by_role("button", name="简体中文").click()
    page.get_by_role("button", name="试用示例").click()
    at(page, "meter")
    for stop in STOPS[1:5]:
        go_on(page, stop)

    sent = demo.shell(SENT)

    assert [one for one in ("绝对不要动支付表", "周四 10:00") if one not in sent] == []
    assert (
        demo.shell("from health.models import CompactionRun as R; print(R.objects.latest('pk').trigger)")
        == "pre_request"
    )
