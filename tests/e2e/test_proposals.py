"""The critic's proposals in a real browser: accepted, changed, dismissed and undone by keyboard, in both schemes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.accessibility import assert_readable
from tests.e2e.steps import sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

PROPOSALS = """
from dialogs.models import LLM, Agent, Provider
from health.models import Proposal
Proposal.objects.all().delete()
provider, _new = Provider.objects.get_or_create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm, _new = LLM.objects.get_or_create(provider=provider, model_id="m" * 60, context_length=32768)
for name in ("Coding", "Writer", "Reader"):
    guarded = {"name": name, "llm": llm, "context_budget": True, "context_limit": 5000}
    agent, _new = Agent.objects.update_or_create(slug=name.lower(), defaults=guarded)
    Proposal.objects.create(
        kind="limit", agent=agent, llm=llm, before={"limit": 5000, "own": 5000, "is_on": True}, after={"limit": 6200},
        evidence={"findings": {"OVER_HIT": 5}, "dialogs": 4},
        expected={"over_hits": [9, 1], "compactions": [14, 6], "tokens_sent": [80000, 97000]},
    )
"""
LIMITS = (
    "from dialogs.models import Agent; print(*Agent.objects.order_by('slug').values_list('context_limit', flat=True))"
)


def waiting(page: Page, agent: str) -> Locator:
    return page.get_by_role("article").filter(has=page.get_by_role("heading", name=f"Limit of {agent}"))


def decided(page: Page, agent: str) -> Locator:
    return page.get_by_role("row").filter(has_text=f"Limit of {agent}")


def test_a_proposal_is_accepted_changed_dismissed_and_undone_by_keyboard(
    page: Page, stack: Stack, faults: list[str]
) -> None:
    stack.shell(PROPOSALS)
    page.set_viewport_size({"width": 390, "height": 800})
    sign_in(page, stack, "/proposals/")
    expect(waiting(page, "Coding")).to_contain_text("5 times within 24 hours")
    expect(waiting(page, "Coding").get_by_role("row").nth(1)).to_contain_text("≈9≈1")
    assert_readable(page)

    waiting(page, "Coding").get_by_role("button", name="Accept").press("Enter")
    expect(page.get_by_text("It is in force.")).to_be_visible()
    # More than the window is refused by the browser, and changes nothing.
    limit = waiting(page, "Writer").get_by_label("Limit (tokens)")
    limit.fill("99999")
    limit.press("Enter")
    assert limit.evaluate("field => field.validity.rangeOverflow")
    expect(waiting(page, "Writer")).to_be_visible()
    assert stack.shell(LIMITS).split() == ["6200", "5000", "5000"]
    limit.fill("7000")
    limit.press("Enter")
    expect(decided(page, "Writer")).to_contain_text("5,000 → 7,000")
    waiting(page, "Reader").get_by_role("button", name="Dismiss").press("Enter")
    expect(page.get_by_text("not proposed again this week")).to_be_visible()
    assert stack.shell(LIMITS).split() == ["6200", "5000", "7000"]

    decided(page, "Coding").get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("What was in force before is in force again.")).to_be_visible()
    expect(decided(page, "Coding")).to_contain_text("undone")
    assert stack.shell(LIMITS).split() == ["5000", "5000", "7000"]
    assert_readable(page)
