"""Nothing configured: twelve ordinary messages to the demo model, more than its window holds. Nobody need notice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.steps import ask, begin_dialog, sign_in
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NAME = "Ottilie Brandauer"
RULE = "Always give prices in Swiss francs."
OLD, NEW = "12 May", "26 May"
MESSAGES = (
    f"Hello! My name is {NAME}. I plan a walking holiday in the Alps for two people and would like your help.",
    f"{RULE} And please keep your answers short.",
    f"We leave on {OLD} by train from Vienna and stay for eight days. What should we pack for the first days?",
    "Which shoes are good for wet paths, and how many pairs of socks does a person need for a week of walking?",
    "My partner does not like heights. What kind of path suits somebody who does not like to look down?",
    f"Our dates have changed: we leave on {NEW}, not on {OLD}. Is there still snow on the high paths in that season?",
    "How do we keep food fresh on a long day in the sun, and what would you take along for lunch in the mountains?",
    "What is a good way to get up early without an alarm clock, and how long should a break at noon be?",
    "Tell me about mountain huts. What do people bring along for a night in one, and what is it like to sleep there?",
    "What do we do when a thunderstorm comes up while we are still an hour away from the next village?",
    "Which flowers might we see in the meadows, and which animals live up there among the rocks?",
    "Thank you. Please tell me in one sentence what we have planned so far, with my name in it.",
)
STATE = """
import json
from dialogs.models import Course, Dialog, Generation
from dialogs.compacting.present import present_context
from dialogs.context import chat_request
from dialogs.selectors.turns import dialog_to_drive
from health.models import CompactionRun
dialog = dialog_to_drive(Dialog.objects.latest("pk").pk)
last = Generation.objects.latest("id")
print(json.dumps({
    "courses": Course.objects.count(),
    "runs": [[run.status, run.trigger] for run in CompactionRun.objects.order_by("pk")],
    "failed": Generation.objects.exclude(status="finished").count(),
    "sent": "\\n".join(one.content for one in chat_request(present_context(dialog)).messages),
    "largest": max(g.prompt_tokens or 0 for g in Generation.objects.all()),
    "window": last.llm.context_length,
}))
"""


def state(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.shell(STATE))
    return found


@pytest.fixture
def talk(page: Page, demo: Stack, faults: list[str]) -> Page:
    sign_in(page, demo)
    begin_dialog(page, demo)
    for text in MESSAGES:
        ask(page, text)
    return page


def test_twelve_messages_are_compacted_in_place_and_what_was_said_still_stands(talk: Page, demo: Stack) -> None:
    now = state(demo)

    applied = [status for status, _trigger in now["runs"] if status == "applied"]
    assert len(applied) >= 2, now["runs"]
    assert (now["courses"], now["failed"]) == (1, 0)
    assert now["largest"] <= now["window"]
    for said in (NAME, RULE, NEW):
        assert said in now["sent"]
    expect(talk.get_by_text("Course 2")).to_have_count(0)

    talk.get_by_role("button", name="Undo").last.click()

    expect(talk.get_by_role("button", name="Redo").last).to_be_visible()
    assert "undone" in [status for status, _trigger in state(demo)["runs"]]
