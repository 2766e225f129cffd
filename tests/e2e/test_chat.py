"""A person, a real Chromium, a real `manage.py up`, and the real tiny model behind llama.cpp's server."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, Route, expect

from health.monitor.levels import Configured, read
from health.monitor.usage import Usage
from tests.e2e.steps import PATIENCE_MS, answers, ask, begin_dialog, begin_long_answer, composer, send, sign_in
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


@pytest.fixture
def chat(page: Page, demo: Stack, faults: list[str]) -> Page:
    """A new dialog with the demo agent."""
    sign_in(page, demo)
    begin_dialog(page, demo)
    return page


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


def test_the_meter_shows_the_number_that_the_provider_reported(chat: Page, demo: Stack) -> None:
    expect(chat.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")

    ask(chat, "Name three fruits.")

    reported = last_generation(demo)["prompt_tokens"]
    assert isinstance(reported, int)
    expect(chat.get_by_role("meter")).to_have_attribute("aria-valuenow", str(reported))
    expect(chat.locator("#meter")).to_contain_text(f"{reported:,} / 896")
    expect(chat.locator("#meter")).to_have_attribute("data-level", "healthy")


def test_every_level_equals_the_arithmetic_on_the_reported_usage(chat: Page, demo: Stack) -> None:
    for number in range(3):
        ask(chat, f"{LONG} Part {number}.")

    rows = json.loads(demo.shell(READINGS))
    assert len(rows) >= 3
    for prompt, completion, read_tokens, level, window, optimal in rows:
        if prompt is not None:
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
            expected = read(usage, Configured(context_length=window, optimal_max_tokens=optimal))
            assert (read_tokens, level) == (prompt, expected.level)


def test_a_stopped_answer_keeps_what_came(chat: Page, demo: Stack) -> None:
    begin_long_answer(chat, LONG)

    composer(chat).press("Escape")

    expect(answers(chat).last.get_by_text("stopped")).to_be_visible(timeout=PATIENCE_MS)
    kept = last_generation(demo)
    assert kept["status"] == "stopped"
    assert kept["text"]


def test_who_stops_by_the_button_can_write_on_though_the_button_goes_before_its_answer_comes(chat: Page) -> None:
    def late(route: Route) -> None:
        answer = route.fetch()
        expect(chat.locator("#stop")).to_have_count(0, timeout=PATIENCE_MS)
        route.fulfill(response=answer)

    begin_long_answer(chat, LONG)
    chat.route("**/stop/", late)
    chat.get_by_role("button", name="Stop").press("Enter")

    expect(composer(chat)).to_be_focused(timeout=PATIENCE_MS)


def test_a_reload_in_mid_stream_shows_the_same_and_the_turn_goes_on(chat: Page) -> None:
    begin_long_answer(chat, LONG)
    begun = chat.locator("#live-block-0").inner_text()[:40]

    chat.reload()

    expect(chat.locator("#rows")).to_contain_text(begun, timeout=PATIENCE_MS)
    expect(answers(chat)).to_have_count(1, timeout=PATIENCE_MS)
    expect(answers(chat).first).to_contain_text(begun)


def test_closing_the_tab_does_not_stop_the_turn(chat: Page, demo: Stack) -> None:
    begin_long_answer(chat, LONG)
    address = chat.url
    other = chat.context.new_page()

    chat.close()
    other.goto(address)

    expect(answers(other)).to_have_count(1, timeout=PATIENCE_MS)
    assert last_generation(demo)["status"] == "finished"


def test_a_second_tab_streams_the_same_answer(chat: Page) -> None:
    other = chat.context.new_page()
    other.goto(chat.url)

    ask(chat, "Say hello in one word.")

    expect(answers(other)).to_have_count(1, timeout=PATIENCE_MS)
    text = ".message-text"
    assert answers(other).first.locator(text).inner_text() == answers(chat).first.locator(text).inner_text()


def test_a_retry_makes_a_second_version_and_keeps_the_first(chat: Page) -> None:
    ask(chat, "Name a colour.")

    answers(chat).last.get_by_role("button", name="Retry").click()

    expect(answers(chat).last).to_contain_text("2/2", timeout=PATIENCE_MS)
    answers(chat).last.get_by_role("button", name="Earlier version").click()
    expect(answers(chat).last).to_contain_text("1/2")


def test_the_last_message_can_be_said_anew(chat: Page) -> None:
    ask(chat, "Name a colour.")
    mine = chat.locator(".message-row.user").last

    mine.get_by_text("Edit").click()
    mine.get_by_label("Your message").fill("Name an animal.")
    mine.get_by_role("button", name="Send again").click()

    expect(chat.locator(".message-row.user").last).to_contain_text("Name an animal.", timeout=PATIENCE_MS)
    expect(chat.locator(".message-row.user").last).to_contain_text("2/2", timeout=PATIENCE_MS)
    expect(answers(chat)).to_have_count(1, timeout=PATIENCE_MS)


def test_a_message_can_be_copied(chat: Page) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    send(chat, "Copy me, please.")

    chat.locator(".message-row.user").last.get_by_role("button", name="Copy").click()

    expect(chat.get_by_text("Copied", exact=True).first).to_be_visible()
    assert chat.evaluate("() => navigator.clipboard.readText()") == "Copy me, please."
