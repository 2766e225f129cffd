"""The dialog page in a real Chromium, against the scripted provider: levels, keyboard, drafts, lost connections."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.steps import answers, ask, begin_dialog, begin_long_answer, composer, get_answer, play, send
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

NAMELESS = (
    "() => [...document.querySelectorAll('button, a, input:not([type=hidden]), textarea, select, summary')]"
    ".filter((e) => !(e.textContent.trim() || e.ariaLabel || e.title || e.labels?.length)).map((e) => e.outerHTML)"
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
        {"match": "endless", "text": "One moment.", "hang": True},
        {"match": "hostile", "text": HOSTILE},
        {"text": "fine", "usage": usage(100)},
    )
    stack.shell(ROWS)
    return stack


def usage(prompt_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": prompt_tokens, "completion_tokens": 5, "total_tokens": prompt_tokens + 5}


@pytest.fixture
def chat(page: Page, scripted: Stack) -> Page:
    begin_dialog(page, scripted)
    return page


def colour_of(page: Page, level: str) -> str:
    found: str = page.evaluate(
        "(level) => { const probe = document.createElement('i'); probe.dataset.level = level;"
        " document.body.append(probe); probe.style.color = `var(--level-${level})`;"
        " return getComputedStyle(probe).color; }",
        level,
    )
    return found


def test_the_meter_says_the_level_in_word_colour_and_number(chat: Page, faults: list[str]) -> None:
    meter = chat.locator("#meter")
    ask(chat, "silent")
    expect(meter).to_have_attribute("data-level", "unknown")
    expect(chat.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")
    expect(meter.locator(".meter-percent")).to_have_count(0)

    for level, words in (("healthy", "25 %"), ("caution", "60 %"), ("critical", "107 %")):
        get_answer(chat, level)
        expect(meter).to_have_attribute("data-level", level)
        expect(meter).to_contain_text(level)
        expect(meter).to_contain_text(words)
        # Retried: the socket may be replacing the meter just now.
        expect(meter.locator(".meter-word")).to_have_css("color", colour_of(chat, level))


def test_the_panel_opens_by_keyboard_and_stays_open_when_the_next_answer_arrives(chat: Page, faults: list[str]) -> None:
    ask(chat, "healthy")
    assert chat.evaluate(NAMELESS) == []
    button, panel = chat.locator(".meter-button"), chat.locator("#health-panel")

    button.press("Enter")
    expect(panel).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(panel).to_contain_text("reported by the provider")
    chat.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(button).to_be_focused()

    button.click()
    get_answer(chat, "critical")
    expect(panel).to_be_visible()
    expect(panel).to_contain_text("1,070")
    expect(button).to_have_attribute("aria-expanded", "true")


def test_the_composer_breaks_lines_keeps_its_draft_and_sends_no_empty_message(chat: Page, faults: list[str]) -> None:
    composer(chat).press("Enter")
    expect(chat.locator("#composer-error")).to_be_visible()

    composer(chat).fill("one")
    composer(chat).press("Shift+Enter")
    composer(chat).press_sequentially("two")
    composer(chat).dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    expect(composer(chat)).to_have_value("one\ntwo")
    expect(chat.locator(".message-row")).to_have_count(0)

    chat.reload()
    expect(composer(chat)).to_have_value("one\ntwo")


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


def test_a_turn_that_waits_for_its_provider_says_so_and_is_stopped_or_answered_in_its_turn(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    scripted.shell("from dialogs.models import Provider; Provider.objects.update(max_concurrent=1)")
    begin_long_answer(chat, "endless")
    waiting = chat.context.new_page()
    begin_dialog(waiting, scripted)
    turn = waiting.locator("#turn")

    send(waiting, "healthy")
    expect(turn).to_contain_text("Waiting for a free slot at scripted: number 1 in line.")
    waiting.get_by_role("button", name="Stop").click()
    expect(turn).not_to_have_attribute("data-busy", "", timeout=5_000)
    expect(answers(waiting)).to_have_count(0)

    send(waiting, "healthy again")
    expect(turn).to_contain_text("number 1 in line.")
    composer(chat).press("Escape")
    expect(answers(waiting)).to_have_count(1, timeout=30_000)
    expect(turn).not_to_contain_text("in line")
    scripted.shell("from dialogs.models import Provider; Provider.objects.update(max_concurrent=None)")


def test_a_turn_goes_on_though_its_page_is_reloaded_and_closed(chat: Page, faults: list[str]) -> None:
    begin_long_answer(chat, "slow")
    chat.reload()
    expect(chat.locator(".message-row.live")).to_contain_text("word")
    expect(answers(chat)).to_have_count(1, timeout=30_000)
    expect(answers(chat)).to_contain_text("word " * 59 + "word")

    begin_long_answer(chat, "slow again")
    address, other = chat.url, chat.context.new_page()
    chat.close()
    other.goto(address)
    expect(answers(other)).to_have_count(2, timeout=30_000)
    expect(answers(other).last).to_contain_text("word " * 59 + "word")


def test_a_retry_makes_a_second_version_and_keeps_the_first(chat: Page, faults: list[str]) -> None:
    ask(chat, "healthy")

    answers(chat).last.get_by_role("button", name="Retry").click()

    expect(answers(chat).last).to_contain_text("2/2", timeout=30_000)
    answers(chat).last.get_by_role("button", name="Earlier version").click()
    expect(answers(chat).last).to_contain_text("1/2")


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


def test_what_a_model_repeats_is_inert(chat: Page, faults: list[str]) -> None:
    loaded: list[str] = []
    chat.on("request", lambda request: loaded.append(request.url))

    ask(chat, "hostile <script>window.hacked = 1</script>")

    assert chat.evaluate("() => window.hacked") is None
    assert chat.locator(".message-row img, .message-row script, .message-row a[href^='javascript']").count() == 0
    assert not any("evil.example" in url for url in loaded)


def test_the_interface_speaks_chinese(chat: Page, faults: list[str]) -> None:
    chat.get_by_label("Language", exact=True).click()
    chat.get_by_role("button", name="简体中文").click()

    expect(chat.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(chat.locator("#meter")).to_contain_text("未知")
    composer(chat).fill("caution")
    composer(chat).press("Enter")
    expect(chat.locator("#meter")).to_contain_text("吃紧", timeout=20_000)


def test_a_phone_shows_everything_without_scrolling_sideways(chat: Page, faults: list[str]) -> None:
    chat.emulate_media(color_scheme="dark")
    chat.set_viewport_size({"width": 390, "height": 844})

    get_answer(chat, "critical")

    expect(chat.locator("#meter")).to_be_in_viewport()
    expect(chat.locator("#meter")).to_contain_text("critical")
    tokens = chat.locator("#meter .meter-tokens")
    expect(tokens).to_be_visible()
    expect(tokens).to_be_in_viewport(ratio=1)
    expect(tokens).to_have_text("1,070 / 1,000")
    expect(composer(chat)).to_be_in_viewport()
    assert chat.evaluate("() => document.documentElement.scrollWidth") <= 390
