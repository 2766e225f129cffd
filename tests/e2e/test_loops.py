"""An agent on its own that goes round in circles, in a real browser: it rests, says why, and begins afresh."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, begin_dialog, play, rest
from tests.stack import Stack

pytestmark = pytest.mark.e2e
# The next three calls are the last before it is looked at; what it gives them is no number, so each fails alike.
ROWS = """
from dialogs.models import LLM, Agent, Dialog, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=8192, context_length_source="admin")
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
NEARLY_LOOKED_AT = "from dialogs.models import Dialog; Dialog.objects.update(unchecked_calls=17)"
USAGE = {"prompt_tokens": 50, "completion_tokens": 5}
LOST = {
    "tool_calls": [{"id": "a", "name": "delete_reminder", "arguments": json.dumps({"number": "the_" + "very_" * 12})}],
    "usage": USAGE,
    "finish": "tool_calls",
}
DONE = {
    "tool_calls": [{"id": "b", "name": "goal_done", "arguments": '{"summary": "Found."}'}],
    "usage": USAGE,
    "finish": "tool_calls",
}


def test_it_rests_and_begins_afresh_at_a_press(page: Page, stack: Stack, faults: list[str]) -> None:
    stack.shell(ROWS)
    begin_dialog(page, stack)
    stack.shell(NEARLY_LOOKED_AT)
    play(stack, LOST)
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Keep going on its own").click()
    page.get_by_label("Goal").fill("Find the way.")
    page.get_by_role("button", name="Start").click()

    notice = page.get_by_role("region", name="The agent goes round in circles")
    expect(notice).to_contain_text("failed 3 times with the same error", timeout=PATIENCE_MS)
    expect(page.locator("#run-words")).to_contain_text("Paused, because the agent seems to go round in circles.")
    rest(page)
    for scheme, width in (("light", 1280), ("dark", 360)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        assert violations(page, "main") == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0

    play(stack, {"text": "We look for the way.", "usage": USAGE}, DONE, {"text": "There.", "usage": USAGE})
    notice.get_by_role("link", name="Start fresh with a handover").press("Enter")
    page.get_by_role("button", name="Reset Agent Chat").press("Enter")

    expect(page.locator("#run-words")).to_contain_text("the agent says that it is done", timeout=PATIENCE_MS)
    expect(notice).to_have_count(0)
