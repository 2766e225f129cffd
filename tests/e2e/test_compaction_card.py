"""The card of a compaction in a real Chromium: it comes with the guard; a success goes by itself, a failure stays."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import DESK, NO_WIDER, PATIENCE_MS, PHONE, begin_dialog, play, rest, send
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, CompactionDisplay, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000, context_length_source="admin")
Agent.objects.create(name="Helper", slug="helper", llm=llm, context_budget=True, context_limit=3500)
CompactionDisplay.objects.create(user=User.objects.get(username="admin"), auto_hide_seconds=1)
"""
# The seconds are more than a busy machine takes to show it.
DETAIL = """
from dialogs.models import CompactionDisplay
CompactionDisplay.objects.update(detail={!r}, auto_hide_seconds=8)
"""
HISTORY = """
from dialogs.models import Dialog
from tests.dialogs.compacting_builders import a_history
a_history(Dialog.objects.latest("created_at"), pairs=16)
"""
RUN = """
from dialogs.common.broadcast import compaction_on_commit
from dialogs.models import Dialog
from tests.dialogs.compaction_runs import a_run
dialog = Dialog.objects.latest("created_at")
compaction_on_commit(dialog.pk, a_run(dialog, {fields}).pk)
"""
GO_ON = """
from dialogs.common.broadcast import compaction_on_commit
from health.models import CompactionRun
CompactionRun.objects.filter(pk=CompactionRun.objects.latest("id").pk).update(**{fields})
run = CompactionRun.objects.latest("id")
compaction_on_commit(run.dialog_id, run.pk)
"""
SUCCESS = """
from django.utils import timezone
from dialogs.common.broadcast import compaction_on_commit
from dialogs.models import Dialog
from tests.dialogs.compaction_runs import an_applied_run
dialog = Dialog.objects.latest("created_at")
compaction_on_commit(dialog.pk, an_applied_run(dialog, finished_at=timezone.now()).pk)
"""
# What a run is at, the colour of its bar, and how full the context is called.
BARS: tuple[tuple[dict[str, object], str, str | None], ...] = (
    ({"phase": "hybrid", "tokens_now": 3000}, "rgb(0, 122, 204)", "60"),
    ({"phase": "hybrid", "tokens_now": 3000, "priority": 1}, "rgb(76, 175, 80)", "60"),
    ({"phase": "hybrid", "tokens_now": 4500, "priority": 1}, "rgb(255, 152, 0)", "90"),
    ({"phase": "recovery", "tokens_now": 4500, "priority": 1}, "rgb(244, 67, 54)", None),
)
PHASES = """
import json
from health.models import CompactionRun
print(json.dumps([step["phase"] for step in CompactionRun.objects.latest("queued_at").steps]))
"""
# Keeps every phase that the card has shown, however short.
WATCH = """() => {
  window.phases = [];
  const look = () => {
    const { phase } = document.getElementById("compaction-card").dataset;
    if (phase && window.phases.at(-1) !== phase) window.phases.push(phase);
  };
  new MutationObserver(look).observe(document.querySelector(".dialog"), { childList: true });
}"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(stack, {"text": "fine"})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, scripted: Stack) -> Page:
    begin_dialog(page, scripted)
    return page


def card(page: Page) -> Locator:
    return page.locator("#compaction-card")


def begin_run(stack: Stack, **fields: object) -> None:
    """A run stands in this state; nobody works at it."""
    stack.shell(RUN.format(fields=", ".join(f"{name}={value!r}" for name, value in fields.items())))


def go_on(stack: Stack, **fields: object) -> None:
    """The run that stands there is now so far."""
    stack.shell(GO_ON.format(fields=fields))


def test_the_guards_work_is_shown_and_its_success_goes_by_itself_although_its_details_are_open(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    scripted.shell(HISTORY)
    chat.reload()
    chat.evaluate(WATCH)
    watch_the_guard(chat, scripted)
    it_has_gone_for_good(chat)

    scripted.shell(DETAIL.format("detailed"))
    chat.mouse.move(900, 400)
    scripted.shell(SUCCESS)
    expect(chat.locator("#compaction-details")).to_have_attribute("open", "")
    expect(card(chat)).to_be_hidden(timeout=PATIENCE_MS)


def watch_the_guard(page: Page, stack: Stack) -> None:
    send(page, "What does the rotor show?")
    page.wait_for_function("() => window.phases.at(-1) === 'success'", timeout=PATIENCE_MS)
    phases = page.evaluate("() => window.phases")
    had = json.loads(stack.shell(PHASES))
    assert (had[0], had[-1]) == ("detection", "success")
    assert {"summarize_old", "trim_payloads"} & set(had)
    # Detection takes milliseconds: who looks later is shown what is then. But all that is shown is, in its order.
    assert phases == [phase for phase in had if phase in phases]
    assert set(phases) - {"detection", "success"}
    expect(page.locator("#live-region")).not_to_be_empty()


def it_has_gone_for_good(page: Page) -> None:
    rest(page)
    expect(card(page)).to_be_hidden()
    with page.expect_websocket() as socket:
        page.reload()
    expect(card(page)).to_be_hidden()
    # A page that hears nothing yet would miss a success, which is shown for seconds only.
    socket.value.wait_for_event("framereceived", timeout=PATIENCE_MS)


def test_the_bar_has_its_colours_and_says_how_far_it_is_and_a_failure_stays_until_it_is_closed(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    scripted.shell(DETAIL.format("normal"))
    begin_run(scripted, phase="detection")
    expect(card(chat)).to_have_attribute("data-phase", "detection")
    expect(card(chat)).to_be_in_viewport(ratio=1)
    for fields, colour, shown in BARS:
        go_on(scripted, **fields)
        the_bar_is(chat, colour, shown)
    opened_details_stay_open(chat, scripted)

    go_on(scripted, status="failed", priority=2, reason="P1 alone needs 5,210 tokens.")
    for scheme, size in (("light", DESK), ("dark", PHONE)):
        the_failure_is_in_sight(chat, scheme, size)
    choose_how_it_is_shown(chat)
    close_it(chat)


def the_bar_is(page: Page, colour: str, shown: str | None) -> None:
    expect(page.locator("#compaction-fill")).to_have_css("fill", colour)
    assert card(page).get_by_role("progressbar").get_attribute("aria-valuenow") == shown
    assert violations(page, "#compaction-card") == []


def opened_details_stay_open(page: Page, stack: Stack) -> None:
    card(page).get_by_text("Details").press("Enter")
    go_on(stack, phase="truncate")
    expect(card(page)).to_contain_text("Dropping the oldest messages…")
    expect(page.locator("#compaction-details")).to_have_attribute("open", "")
    expect(page.locator("#compaction-summary")).to_be_focused()
    page.keyboard.press("Enter")


def the_failure_is_in_sight(page: Page, scheme: str, size: ViewportSize) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size(size)
    expect(card(page)).to_contain_text("P2")
    expect(card(page)).to_contain_text("P1 alone needs 5,210 tokens.")
    expect(card(page)).to_be_in_viewport(ratio=1)
    expect(page.locator("#composer-text")).to_be_in_viewport()
    assert violations(page, "#compaction-card") == []
    assert page.evaluate(NO_WIDER)


def choose_how_it_is_shown(page: Page) -> None:
    card(page).get_by_role("link", name="How compactions are shown").click()
    page.get_by_label("Detail", exact=True).select_option("Minimal")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Save").click()
    expect(card(page)).to_be_visible()
    expect(page.locator("#compaction-details")).to_have_count(0)
    expect(card(page)).not_to_contain_text("P2")


def close_it(page: Page) -> None:
    page.wait_for_load_state()
    page.get_by_role("region", name="Compaction").get_by_role("button", name="Close").press("Enter")
    expect(card(page)).to_be_hidden()
    page.reload()
    expect(card(page)).to_be_hidden()
