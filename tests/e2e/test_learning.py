"""The pages of context events and cleanup tasks in a real browser: by keyboard, on a phone, in both schemes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

EVENTS = """
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.turns.writes.events import log
from health.models import CleanupTask
provider, _new = Provider.objects.get_or_create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm, _new = LLM.objects.get_or_create(provider=provider, model_id="m" * 60, context_length=8192)
agent, _new = Agent.objects.get_or_create(name="Writer", slug="writer", llm=llm)
admin = User.objects.get(username="admin")
dialog = Dialog.objects.create(owner=admin, agent=agent, llm=llm, active_at=timezone.now(), title="A" * 120)
for code in ("WARNING", "OVER_HIT"):
    log(code, dialog, estimated=5200, limit=5000, reason="there is nothing older to prune")
CleanupTask.objects.create(dialog=dialog, assignee=admin)
"""


def test_events_are_filtered_and_a_task_is_closed_by_keyboard_on_a_phone(
    page: Page, stack: Stack, faults: list[str]
) -> None:
    stack.shell(EVENTS)
    page.set_viewport_size({"width": 360, "height": 800})
    sign_in(page, stack, "/events/?days=1")

    page.get_by_label("What happened").select_option("OVER_HIT")
    page.get_by_role("button", name="Filter").press("Enter")
    expect(page.locator(".event-code").first).to_have_text("OVER_HIT")
    expect(page.get_by_text("≈5,200 / 5,000").first).to_be_visible()
    expect(page.get_by_role("table", name="By agent")).to_be_visible()
    assert_readable(page)

    page.get_by_role("link", name="Context cleanup").press("Enter")
    page.get_by_label("Pin what must stay").first.press("Space")
    assert_readable(page)
    page.get_by_role("button", name="Close the task").first.press("Enter")
    expect(page.get_by_text("Nothing to clean up")).to_be_visible()
