"""A person, a real Chromium, a real `manage.py up`, and the real tiny model behind llama.cpp's server."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, Route, expect

from health.monitor.levels import Configured, read
from health.monitor.usage import Usage
from tests.e2e.steps import (
    PATIENCE_MS,
    answers,
    ask,
    begin_dialog,
    begin_long_answer,
    composer,
    sign_in_by_password,
)
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LONG = "Tell me a long story about a fox and a village."
READINGS = """
import json
from health.models import HealthReading
rows = HealthReading.objects.select_related("generation__llm").order_by("generation_id")
print(json.dumps([[r.generation.prompt_tokens, r.generation.completion_tokens, r.prompt_tokens, r.level,
    r.generation.llm.context_length, r.generation.llm.optimal_max_tokens] for r in rows]))
"""


def last_generation(stack: Stack) -> dict[str, object]:
    code = """
import json
from dialogs.models import Generation
g = Generation.objects.latest("id")
text = g.message.content if g.message else ""
print(json.dumps({"status": g.status, "prompt_tokens": g.prompt_tokens, "text": text}))
"""
    found: dict[str, object] = json.loads(stack.shell(code))
    return found


def test_who_signs_in_and_talks_sees_what_the_provider_reported_in_every_tab(
    page: Page, demo: Stack, faults: list[str]
) -> None:
    sign_in_by_password(page, demo)
    page.get_by_role("button", name="New dialog").first.click()
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")
    other = page.context.new_page()
    other.goto(page.url)

    page.wait_for_load_state()
    ask(page, "Name three fruits.")

    reported = last_generation(demo)["prompt_tokens"]
    assert isinstance(reported, int)
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuenow", str(reported))
    expect(page.locator("#meter")).to_contain_text(f"{reported:,} / 896")
    expect(page.locator("#meter")).to_have_attribute("data-level", "healthy")
    expect(answers(other)).to_have_count(1, timeout=PATIENCE_MS)
    text = ".message-text"
    assert answers(other).first.locator(text).inner_text() == answers(page).first.locator(text).inner_text()

    for number in range(2):
        ask(page, f"{LONG} Part {number}.")
    assert_levels_follow_from_usage(demo)


def assert_levels_follow_from_usage(stack: Stack) -> None:
    rows = json.loads(stack.shell(READINGS))
    assert len(rows) >= 3
    for prompt, completion, read_tokens, level, window, optimal in rows:
        if prompt is not None:
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
            expected = read(usage, Configured(context_length=window, optimal_max_tokens=optimal))
            assert (read_tokens, level) == (prompt, expected.level)


def test_an_answer_is_stopped_by_escape_and_by_the_button_and_keeps_what_came(
    page: Page, demo: Stack, faults: list[str]
) -> None:
    begin_dialog(page, demo)
    begin_long_answer(page, LONG)
    composer(page).press("Escape")
    expect(answers(page).last.get_by_text("stopped")).to_be_visible(timeout=PATIENCE_MS)
    kept = last_generation(demo)
    assert kept["status"] == "stopped"
    assert kept["text"]

    # Who stops by the button can write on, though the button goes before its answer comes.
    def late(route: Route) -> None:
        answer = route.fetch()
        expect(page.locator("#stop")).to_have_count(0, timeout=PATIENCE_MS)
        route.fulfill(response=answer)

    begin_long_answer(page, f"{LONG} Another one.")
    page.route("**/stop/", late)
    page.get_by_role("button", name="Stop").press("Enter")
    expect(composer(page)).to_be_focused(timeout=PATIENCE_MS)
