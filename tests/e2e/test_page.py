"""The dialog page in a real Chromium, against the scripted provider: levels, keyboard, drafts, lost connections."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.steps import (
    answers,
    ask,
    begin_dialog,
    begin_long_answer,
    composer,
    get_answer,
    play,
    send,
    sign_in,
)
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LEVELS = {"healthy": 250, "caution": 600, "critical": 1070}
ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=1000, context_length_source="admin",
    optimal_max_tokens=500, compaction="off")
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
HOSTILE = (
    "<script>window.hacked = 1</script> <img src=x onerror=window.hacked=1> [x](javascript:window.hacked=1)\n\n"
    "![pixel](https://evil.example/pixel.png)"
)


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(
        stack,
        # What Dominds asks when the context is nearly full is never answered: it stays so while a test looks at it.
        {"match": "nearly full (critical", "text": "One moment.", "hang": True},
        *({"match": level, "text": "ok", "usage": usage(tokens)} for level, tokens in LEVELS.items()),
        {"match": "silent", "text": "no usage here"},
        {"match": "slow", "text": ["word "] * 60, "delay": 0.1, "usage": usage(300)},
        {"match": "hostile", "text": HOSTILE},
        {"match": "refused", "error": {"code": "authentication_refused", "message": "bad key"}},
        {"text": "fine", "usage": usage(100)},
    )
    stack.shell(ROWS)
    return stack


def usage(prompt_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": prompt_tokens, "completion_tokens": 5, "total_tokens": prompt_tokens + 5}


@pytest.fixture
def chat(page: Page, scripted: Stack) -> Page:
    sign_in(page, scripted)
    begin_dialog(page, scripted)
    page.wait_for_load_state()
    return page


@pytest.mark.parametrize(("level", "words"), [("healthy", "25 %"), ("caution", "60 %"), ("critical", "107 %")])
def test_the_meter_says_the_level_in_word_colour_and_number(
    chat: Page, faults: list[str], level: str, words: str
) -> None:
    get_answer(chat, level)

    meter = chat.locator("#meter")
    expect(meter).to_have_attribute("data-level", level)
    expect(meter).to_contain_text(level)
    expect(meter).to_contain_text(words)
    wanted = chat.evaluate(
        "(level) => { const probe = document.createElement('i'); probe.dataset.level = level;"
        " document.body.append(probe); probe.style.color = `var(--level-${level})`;"
        " return getComputedStyle(probe).color; }",
        level,
    )
    # Retried: the socket may be replacing the meter just now.
    expect(meter.locator(".meter-word")).to_have_css("color", wanted)


def test_a_provider_without_usage_shows_unknown_and_no_number(chat: Page, faults: list[str]) -> None:
    ask(chat, "silent")

    expect(chat.locator("#meter")).to_have_attribute("data-level", "unknown")
    expect(chat.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")
    expect(chat.locator("#meter .meter-percent")).to_have_count(0)


def test_the_panel_opens_by_keyboard_and_escape_gives_the_focus_back(chat: Page, faults: list[str]) -> None:
    ask(chat, "caution")
    button = chat.locator(".meter-button")

    button.press("Enter")
    expect(chat.locator("#health-panel")).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(chat.locator("#health-panel")).to_contain_text("reported by the provider")

    chat.keyboard.press("Escape")
    expect(chat.locator("#health-panel")).to_be_hidden()
    expect(button).to_be_focused()


def test_an_open_panel_stays_open_when_the_next_answer_arrives(chat: Page, faults: list[str]) -> None:
    ask(chat, "healthy")
    chat.locator(".meter-button").click()

    get_answer(chat, "critical")

    expect(chat.locator("#health-panel")).to_be_visible()
    expect(chat.locator("#health-panel")).to_contain_text("1,070")
    expect(chat.locator(".meter-button")).to_have_attribute("aria-expanded", "true")


def test_shift_enter_breaks_the_line_and_composing_does_not_send(chat: Page, faults: list[str]) -> None:
    composer(chat).fill("one")
    composer(chat).press("Shift+Enter")
    composer(chat).press_sequentially("two")
    composer(chat).dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})

    expect(composer(chat)).to_have_value("one\ntwo")
    expect(chat.locator(".message-row")).to_have_count(0)


def test_a_draft_survives_a_reload(chat: Page, faults: list[str]) -> None:
    composer(chat).press_sequentially("half a thought")

    chat.reload()

    expect(composer(chat)).to_have_value("half a thought")


def test_an_empty_message_is_refused_beside_the_field(chat: Page, faults: list[str]) -> None:
    composer(chat).press("Enter")

    expect(chat.locator("#composer-error")).to_be_visible()


def test_a_message_whose_answer_was_lost_can_be_sent_again_and_is_one(chat: Page) -> None:
    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    chat.route("**/send/", lose, times=1)
    composer(chat).fill("Are you there?")
    composer(chat).press("Enter")
    expect(chat.locator("#composer-error")).to_contain_text("could not be sent")

    composer(chat).press("Enter")

    expect(composer(chat)).to_have_value("")
    expect(answers(chat)).to_have_count(1, timeout=30_000)
    expect(chat.locator(".message-row.user")).to_have_count(1)
    send(chat, "Are you there?")
    expect(chat.locator(".message-row.user")).to_have_count(2, timeout=30_000)


def test_a_message_typed_meanwhile_waits_its_turn_and_is_answered(chat: Page, faults: list[str]) -> None:
    begin_long_answer(chat, "slow")

    send(chat, "second question")

    expect(chat.get_by_text("waits its turn")).to_be_visible()
    expect(answers(chat)).to_have_count(2, timeout=30_000)
    expect(chat.get_by_text("waits its turn")).to_have_count(0)


@pytest.fixture
def in_line(chat: Page, scripted: Stack, faults: list[str]) -> Iterator[Page]:
    """A second dialog, whose turn waits because the provider answers one at a time."""
    scripted.shell("from dialogs.models import Provider; Provider.objects.update(max_concurrent=1)")
    begin_long_answer(chat, "slow")
    page = chat.context.new_page()
    begin_dialog(page, scripted)
    send(page, "healthy")
    yield page
    scripted.shell("from dialogs.models import Provider; Provider.objects.update(max_concurrent=None)")


def test_a_turn_that_waits_for_its_provider_says_so_and_is_answered_in_its_turn(in_line: Page) -> None:
    expect(in_line.locator("#turn")).to_contain_text("Waiting for a free slot at scripted: number 1 in line.")
    expect(answers(in_line)).to_have_count(1, timeout=30_000)
    expect(in_line.locator("#turn")).not_to_contain_text("in line")


def test_a_turn_that_waits_for_its_provider_can_be_stopped(in_line: Page) -> None:
    expect(in_line.locator("#turn")).to_contain_text("in line")

    in_line.get_by_role("button", name="Stop").click()

    expect(in_line.locator("#turn")).not_to_have_attribute("data-busy", "", timeout=5_000)
    expect(answers(in_line)).to_have_count(0)


# As who presses Tab as soon as the question stands there: before htmx has settled what it put in.
TAB_AT_ONCE = """() => new MutationObserver(() => {
  setTimeout(() => document.querySelector("#confirm-slot dialog[open] button").focus());
}).observe(document.getElementById("confirm-slot"), { childList: true })"""


def test_a_question_takes_the_focus_once(chat: Page, faults: list[str]) -> None:
    chat.evaluate(TAB_AT_ONCE)
    chat.get_by_label("Dialog actions").click()

    chat.locator(".menu-item-danger").click()
    chat.locator("#confirm-slot dialog[open]").wait_for()
    chat.wait_for_timeout(300)

    expect(chat.locator("#confirm-slot dialog button")).to_be_focused()


def test_a_failed_answer_says_what_to_do_and_can_be_retried(chat: Page, faults: list[str]) -> None:
    send(chat, "refused")

    expect(chat.locator(".attempt-row")).to_contain_text("The provider refused the key")
    expect(chat.locator(".attempt-row").get_by_role("button", name="Retry")).to_be_visible()


def test_what_a_model_repeats_is_inert(chat: Page, faults: list[str]) -> None:
    loaded: list[str] = []
    chat.on("request", lambda request: loaded.append(request.url))

    ask(chat, "hostile <script>window.hacked = 1</script>")

    assert chat.evaluate("() => window.hacked") is None
    assert chat.locator(".message-row img, .message-row script, .message-row a[href^='javascript']").count() == 0
    assert not any("evil.example" in url for url in loaded)


def test_a_killed_web_server_is_noticed_and_the_page_becomes_whole_again(chat: Page, scripted: Stack) -> None:
    begin_long_answer(chat, "slow")

    os.kill(scripted.pid("web"), signal.SIGKILL)

    expect(chat.locator("#connection")).to_contain_text("Reconnecting", timeout=15_000)
    expect(chat.locator("#connection")).to_have_text("", timeout=60_000)
    expect(answers(chat)).to_have_count(1, timeout=60_000)
    expect(answers(chat).first).to_contain_text("word word word")


def test_the_interface_speaks_chinese(chat: Page, faults: list[str]) -> None:
    chat.get_by_label("Language", exact=True).click()
    chat.get_by_role("button", name="简体中文").click()

    expect(chat.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(chat.locator("#meter")).to_contain_text("未知")
    composer(chat).fill("caution")
    composer(chat).press("Enter")
    expect(chat.locator("#meter")).to_contain_text("吃紧", timeout=20_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(chat: Page, faults: list[str], scheme: str) -> None:
    chat.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    chat.set_viewport_size({"width": 390, "height": 844})

    get_answer(chat, "critical")

    expect(chat.locator("#meter")).to_be_in_viewport()
    expect(chat.locator("#meter")).to_contain_text("critical")
    expect(composer(chat)).to_be_in_viewport()
    assert chat.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_every_control_has_a_name(chat: Page, faults: list[str]) -> None:
    ask(chat, "healthy")

    nameless = chat.evaluate(
        "() => [...document.querySelectorAll('button, a, input:not([type=hidden]), textarea, select, summary')]"
        ".filter((e) => !(e.textContent.trim() || e.ariaLabel || e.title || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert nameless == []
