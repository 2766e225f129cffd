"""A person and the demo's real model: twelve ordinary messages, whose small window is compacted in place, a new course
that carries the rules over, and the page of the rules; and the sample's tour. What matters stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from health.monitor.levels import Configured, Usage, read
from tests.e2e.accessibility import violations
from tests.e2e.steps import (
    NO_WIDER,
    PATIENCE_MS,
    PHONE,
    answers,
    ask,
    begin_dialog,
    begin_long_answer,
    composer,
    sign_in,
    sign_in_by_password,
)
from tests.e2e.test_sample import SENT, STOPS, at, forgotten, go_on
from tests.stack import Stack

pytestmark = pytest.mark.e2e

RULE = "You must always answer in one sentence."
SAID = (
    "My name is Mira.",
    RULE,
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
from dialogs.context.reads import seen_by_generation
# A model that ends its answer without a word is asked once more.
failed = Generation.objects.exclude(status="finished").exclude(error_code="empty_answer")
dialog = Dialog.objects.latest("created_at")
sent = seen_by_generation(dialog, dialog.generations.latest("pk").pk)
print(json.dumps({
    "courses": dialog.courses.count(),
    "applied": dialog.compaction_runs.filter(status="applied").count(),
    "failed": list(failed.values_list("status", "error_code")),
    "empty": dialog.messages.filter(role="assistant", content="").count(),
    "reported": dialog.generations.latest("pk").prompt_tokens,
    "request": "\\n".join(part.text for part in sent.parts),
}))
"""
TEXTS = ".message-row:is(.user, .assistant):not(.live) .message-text"
LONG = "Tell me a long story about a fox and a village."
STOPPED = """
import json
from dialogs.models import Generation
last = Generation.objects.latest("id")
print(json.dumps([last.status, last.message.content if last.message else ""]))
"""
TRIGGER = "from health.models import CompactionRun as R; print(R.objects.latest('pk').trigger)"
READINGS = """
import json
from health.models import HealthReading
rows = HealthReading.objects.select_related("generation__llm").order_by("generation_id")
print(json.dumps([[r.generation.prompt_tokens, r.generation.completion_tokens, r.prompt_tokens, r.level,
    r.generation.llm.context_length, r.generation.llm.optimal_max_tokens] for r in rows]))
"""


def facts(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.shell(FACTS))
    return found


def test_who_signs_in_and_talks_is_compacted_in_place_forgets_nothing_stated_and_goes_on_in_a_new_course(
    page: Page, demo: Stack, faults: list[str]
) -> None:
    begin_by_password(page, demo)
    say_the_first_in_two_tabs(page, demo)
    for text in SAID[1:]:
        ask(page, text)
    assert_nothing_stated_is_forgotten(demo)
    assert_levels_follow_from_usage(demo)

    undo_the_last_compaction(page, demo)
    before = said_so_far(page)
    begin_a_new_course_with_the_rule(page)
    go_on_and_back_to_the_earlier_course(page)
    expect(page.locator(TEXTS)).to_have_count(len(before))
    assert said_so_far(page) == before
    look_after_the_rules(page)


def begin_by_password(page: Page, stack: Stack) -> None:
    sign_in_by_password(page, stack)
    page.get_by_role("button", name="New dialog").first.click()
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")


def say_the_first_in_two_tabs(page: Page, stack: Stack) -> None:
    """Both show the answer, and the meter what the provider reported."""
    other = page.context.new_page()
    other.goto(page.url)
    page.wait_for_load_state()
    ask(page, SAID[0])

    reported = facts(stack)["reported"]
    assert isinstance(reported, int)
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuenow", str(reported))
    expect(page.locator("#meter")).to_contain_text(f"{reported:,} / 896")
    expect(page.locator("#meter")).to_have_attribute("data-level", "healthy")
    expect(answers(other)).to_have_count(1, timeout=PATIENCE_MS)
    text = ".message-text"
    assert answers(other).first.locator(text).inner_text() == answers(page).first.locator(text).inner_text()
    other.close()


def assert_nothing_stated_is_forgotten(stack: Stack) -> None:
    found = facts(stack)
    assert (found["courses"], found["failed"], found["empty"]) == (1, [], 0)
    assert found["applied"] >= 2
    assert [one for one in ("Mira", "one sentence", "5,500 euros") if one not in found["request"]] == []


def assert_levels_follow_from_usage(stack: Stack) -> None:
    rows = json.loads(stack.shell(READINGS))
    assert len(rows) >= len(SAID)
    for prompt, completion, read_tokens, level, window, optimal in rows:
        if prompt is not None:
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
            expected = read(usage, Configured(context_length=window, optimal_max_tokens=optimal))
            assert (read_tokens, level) == (prompt, expected.level)


def undo_the_last_compaction(page: Page, stack: Stack) -> None:
    applied = facts(stack)["applied"]

    page.locator(".divider").last.get_by_role("button", name="Undo").click()

    expect(page.locator('.divider[data-state="undone"]')).to_have_count(1)
    assert facts(stack)["applied"] == applied - 1


def begin_a_new_course_with_the_rule(page: Page) -> None:
    """What is carried over is shown, and taken away."""
    page.wait_for_load_state()
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Begin a new course…").click()
    expect(page.locator(".choice .hint").first).to_have_css("display", "block")
    page.get_by_role("button", name="Begin a new course").click()

    head = page.locator("#course-2")
    expect(head).to_contain_text("handover ≈")
    head.get_by_text("Show the handover").click()
    expect(head.locator(".course-handover .plain")).to_contain_text(RULE)
    head.get_by_role("button", name="Take the handover away").click()
    expect(head).to_contain_text("a handover, which you took away", timeout=PATIENCE_MS)


def go_on_and_back_to_the_earlier_course(page: Page) -> None:
    page.wait_for_load_state()
    ask(page, "Say hello in one word.")
    expect(page.locator(".earlier-course")).to_have_count(1)

    page.get_by_role("link", name="Back to the earlier course…").click()
    page.get_by_role("button", name="Go back").click()

    expect(page.locator("#course-2")).to_have_count(0)


def said_so_far(page: Page) -> list[str]:
    """Of each message and answer: an answer that was cut at the end of the window is two."""
    return page.locator(TEXTS).all_inner_texts()


def look_after_the_rules(page: Page) -> None:
    """What was laid down is seen, added and taken back on a page of its own."""
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Standing rules").click()
    rules = page.locator(".archive-item")
    expect(rules.filter(has_text=RULE)).to_have_count(1)

    page.get_by_label("New rule").fill("Answer in French.")
    page.get_by_role("button", name="Add").click()
    expect(rules.first).to_contain_text("Answer in French.")
    rules.filter(has_text=RULE).get_by_role("button", name="Take back").click()

    expect(page.get_by_role("heading", name="Taken back")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    rules.first.get_by_text("Edit").click()
    assert violations(page, ".archive") == []
    assert page.evaluate(NO_WIDER)


def test_an_answer_is_stopped_by_escape_and_by_the_button_and_keeps_what_came(
    page: Page, demo: Stack, faults: list[str]
) -> None:
    begin_dialog(page, demo)
    begin_long_answer(page, LONG)
    composer(page).press("Escape")
    expect(answers(page).last.get_by_text("stopped")).to_be_visible(timeout=PATIENCE_MS)
    status, kept = json.loads(demo.shell(STOPPED))
    assert status == "stopped"
    assert kept

    stop_by_the_button_and_write_on(page)


def stop_by_the_button_and_write_on(page: Page) -> None:
    """Though the button goes before its answer comes."""

    def late(route: Route) -> None:
        answer = route.fetch()
        expect(page.locator("#stop")).to_have_count(0, timeout=PATIENCE_MS)
        route.fulfill(response=answer)

    begin_long_answer(page, f"{LONG} Another one.")
    page.route("**/stop/", late)
    with page.expect_response("**/stop/", timeout=PATIENCE_MS):
        page.get_by_role("button", name="Stop").press("Enter")
    expect(composer(page)).to_be_focused(timeout=PATIENCE_MS)


@pytest.mark.parametrize(
    ("language", "sample", "stated", "stops"),
    [
        ("English", "Try a sample", ("Never touch the payments tables", "on Thursday at 10:00"), len(STOPS)),
        ("简体中文", "试用示例", ("绝对不要动支付表", "周四 10:00"), 5),
    ],
)
def test_the_demo_model_plays_the_tour(
    page: Page, demo: Stack, faults: list[str], language: str, sample: str, stated: tuple[str, str], stops: int
) -> None:
    demo.shell("from dialogs.models import Dialog; Dialog.objects.all().delete()")
    sign_in(page, demo)
    page.locator('summary[aria-label="Language"]').click()
    page.get_by_role("button", name=language).click()
    page.get_by_role("button", name=sample).click()
    at(page, "meter")
    expect(page.locator("#meter")).to_contain_text("/ 896")
    for stop in STOPS[1:5]:
        go_on(page, stop)

    assert forgotten(demo.shell(SENT), *stated) == []
    assert demo.shell(TRIGGER) == "pre_request"
    for stop in STOPS[5:stops]:
        go_on(page, stop)
    expect(answers(page).last).to_contain_text("demo")
