"""The Insights page and "What if" in a real browser: in both schemes, on a phone, by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import PHONE, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ADMIN = """
from django.contrib.auth.models import User
admin = User.objects.get(username="admin")
"""
A_MONTH = f"""{ADMIN}
from datetime import timedelta
from django.utils import timezone
from dialogs.models import LLM, Agent, Course, Dialog, Provider
from dialogs.turns.writes.events import log
from health.models import CompactionRun, HealthReading, LlmCalibration
from tests.builders import a_reading
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_run, a_step
provider = Provider.objects.create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm = LLM.objects.create(provider=provider, model_id="m" * 40, context_length=32768)
agent = Agent.objects.create(name="Writer", slug="writer", llm=llm, context_budget=True, context_limit=5000)
now = timezone.now()
dialog = Dialog.objects.create(owner=admin, agent=agent, llm=llm, active_at=now, title="The pump")
Course.objects.create(dialog=dialog, number=1)
a_history(dialog, pairs=30, sentences=6)
for number in range(40):
    reading = a_reading(dialog, 1200 + 90 * number % 3900)
    HealthReading.objects.filter(pk=reading.pk).update(read_at=now - timedelta(hours=12 * (40 - number)))
for number in range(8):
    ended = now - timedelta(days=2 * number, hours=1)
    steps = [a_step("trim_payloads", 4700, 4400), a_step("summarize_old", 4400, 3300, ms=300 * number)]
    run = a_run(
        dialog, status="applied", estimated_before=4700, estimated_after=3300, reward=1 + number / 10, coherence=0.9,
        limit_tokens=4000 if number > 4 else 5000, steps=steps, finished_at=ended,
    )
    CompactionRun.objects.filter(pk=run.pk).update(queued_at=ended)
LlmCalibration.objects.create(llm=llm, samples=[[90, 96, 100], [120, 98, 100]])
for code in ("WARNING", "OVER_HIT", "OVER_HIT", "OVER_HIT"):
    log(code, dialog, estimated=5200, limit=5000)
"""


@pytest.fixture(scope="module")
def filled(stack: Stack) -> Stack:
    stack.shell(A_MONTH)
    return stack


def test_a_month_is_read_by_everybody_followed_to_its_events_by_keyboard_and_what_if_compared(
    page: Page, filled: Stack, faults: list[str]
) -> None:
    sign_in(page, filled)
    page.get_by_label("Account", exact=True).press("Enter")
    page.get_by_role("link", name="Insights").press("Enter")
    read_the_month(page)
    follow_one_day_to_its_events(page)

    page.goto(f"{filled.url}/insights/")
    compare_what_if(page)


def read_the_month(page: Page) -> None:
    expect(page.get_by_role("img", name="Prompt tokens over time")).to_be_visible()
    expect(page.locator(".chart-mark")).to_have_count(8)
    expect(page.locator(".insights-patterns")).to_contain_text("3 times: the context was over its limit")
    page.get_by_text("The same as tables").press("Enter")
    expect(page.get_by_role("cell", name="≈4,700").first).to_be_visible()
    assert_readable(page)
    page.set_viewport_size(PHONE)
    assert_readable(page)


def follow_one_day_to_its_events(page: Page) -> None:
    page.get_by_label("Period").select_option("1")
    page.get_by_role("button", name="Filter").press("Enter")
    expect(page.locator(".chart-mark")).to_have_count(1)
    page.get_by_role("link", name="To the events").press("Enter")
    expect(page.locator(".event-code").first).to_have_text("OVER_HIT")


def compare_what_if(page: Page) -> None:
    """The table is filled while one looks."""
    page.get_by_role("link", name="Compare").press("Enter")
    page.get_by_label("passages only").press("Space")
    page.get_by_role("button", name="Compare").press("Enter")

    expect(page.locator(".hint", has_text="Done: one dialog")).to_be_visible(timeout=90_000)
    expect(page.locator(".what-if-table tbody tr")).to_have_count(9)
    expect(page.get_by_text("as it is now")).to_be_visible()
    expect(page.get_by_text("≈100 %").first).to_be_visible()
    # At a desk all columns are there, and no number is broken.
    assert page.locator(".table-scroll").evaluate("table => table.scrollWidth <= table.clientWidth")
    assert_readable(page)
