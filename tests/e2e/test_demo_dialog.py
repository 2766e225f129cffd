"""Twelve ordinary messages to the demo's real model: its small window is compacted in place, and what matters stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.steps import ask, begin_dialog
from tests.stack import Stack

pytestmark = pytest.mark.e2e

SAID = (
    "My name is Mira.",
    "You must always answer in one sentence.",
    "The budget is 4,000 euros.",
    "I am planning a trip to Lisbon with two children, six and nine years old. What should we see there?",
    "What is the weather like in May?",
    "How do we get from the airport to the old town?",
    "Which museum is good for children?",
    "Correction: the budget is 5,500 euros.",
    "What can we eat there with children?",
    "Is a day at the beach possible?",
    "How many days should we stay?",
    "What is my name, and how large is the budget?",
)
FACTS = """
import json
from dialogs.models import Dialog, Generation
from dialogs.context.reads.sent_messages import seen_by_generation
# A model that ends its answer without a word is asked once more.
failed = Generation.objects.exclude(status="finished").exclude(error_code="empty_answer")
dialog = Dialog.objects.latest("created_at")
sent = seen_by_generation(dialog, dialog.generations.latest("pk").pk)
print(json.dumps({
    "courses": dialog.courses.count(),
    "applied": dialog.compaction_runs.filter(status="applied").count(),
    "failed": list(failed.values_list("status", "error_code")),
    "empty": dialog.messages.filter(role="assistant", content="").count(),
    "request": "\\n".join(part.text for part in sent.parts),
}))
"""


def facts(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.shell(FACTS))
    return found


def test_twelve_messages_are_compacted_in_place_and_forget_nothing_that_was_stated(
    page: Page, demo: Stack, faults: list[str]
) -> None:
    begin_dialog(page, demo)

    for text in SAID:
        ask(page, text)

    found = facts(demo)
    assert (found["courses"], found["failed"], found["empty"]) == (1, [], 0)
    assert found["applied"] >= 2
    assert [one for one in ("Mira", "one sentence", "5,500 euros") if one not in found["request"]] == []

    page.locator(".divider").last.get_by_role("button", name="Undo").click()

    expect(page.locator('.divider[data-state="undone"]')).to_have_count(1)
    assert facts(demo)["applied"] == found["applied"] - 1
