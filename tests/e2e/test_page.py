"""The dialog page in a real Chromium, against the scripted provider: levels, keyboard, drafts, lost connections."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.e2e.steps import (
    NO_WIDER,
    PHONE,
    answers,
    ask,
    begin_dialog,
    begin_long_answer,
    composer,
    get_answer,
    play,
    send,
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


def test_the_meter_says_the_level_in_word_colour_and_number_its_panel_every_number_and_a_phone_shows_all(
    chat: Page, faults: list[str]
) -> None:
    ask(chat, "silent")
    nothing_was_reported(chat)
    ask(chat, "healthy")
    the_level_is(chat, "healthy", "25 %")
    open_and_close_the_panel_by_keyboard(chat)
    get_answer(chat, "caution")
    the_level_is(chat, "caution", "60 %")

    chat.locator(".meter-button").click()
    get_answer(chat, "critical")
    the_panel_stayed_open_and_follows(chat)
    the_level_is(chat, "critical", "107 %")
    chat.keyboard.press("Escape")
    a_phone_shows_everything(chat)


def nothing_was_reported(page: Page) -> None:
    expect(page.locator("#meter")).to_have_attribute("data-level", "unknown")
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuetext", "unknown")
    expect(page.locator("#meter .meter-percent")).to_have_count(0)


def the_level_is(page: Page, level: str, percent: str) -> None:
    meter = page.locator("#meter")
    expect(meter).to_have_attribute("data-level", level)
    expect(meter).to_contain_text(level)
    expect(meter).to_contain_text(percent)
    # Retried: the socket may be replacing the meter just now.
    expect(meter.locator(".meter-word")).to_have_css("color", colour_of(page, level))


def open_and_close_the_panel_by_keyboard(page: Page) -> None:
    button, panel = page.locator(".meter-button"), page.locator("#health-panel")
    assert page.evaluate(NAMELESS) == []
    button.press("Enter")
    expect(panel).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(panel).to_contain_text("reported by the provider")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(button).to_be_focused()


def the_panel_stayed_open_and_follows(page: Page) -> None:
    panel = page.locator("#health-panel")
    expect(panel).to_be_visible()
    expect(panel).to_contain_text("1,070")
    expect(page.locator(".meter-button")).to_have_attribute("aria-expanded", "true")


def a_phone_shows_everything(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    expect(page.locator("#meter")).to_be_in_viewport()
    expect(page.locator("#meter")).to_contain_text("critical")
    tokens = page.locator("#meter .meter-tokens")
    expect(tokens).to_be_visible()
    expect(tokens).to_be_in_viewport(ratio=1)
    expect(tokens).to_have_text("1,070 / 1,000")
    expect(composer(page)).to_be_in_viewport()
    assert page.evaluate(NO_WIDER)
    back_closes_what_lies_over_the_page(page)


def back_closes_what_lies_over_the_page(page: Page) -> None:
    """What was closed otherwise needs no Back."""
    here, over = page.url, page.locator("dialog:modal")
    page.locator(".meter-button").click()
    expect(over).to_have_count(1)
    page.go_back()
    expect(over).to_have_count(0)
    page.get_by_label("Dialog actions").click()
    page.locator(".menu-item-danger").click()
    expect(over).to_have_count(1)
    page.go_back()
    expect(over).to_have_count(0)
    assert page.url == here

    page.locator(".meter-button").click()
    page.locator("dialog:modal a[href]").first.click()
    expect(page).not_to_have_url(here)
    page.go_back()
    expect(page).to_have_url(here)
    assert not page.evaluate("() => history.state?.over")

    page.get_by_role("button", name="Reminders and Taskdoc").click()
    page.keyboard.press("Escape")
    page.wait_for_function("() => !history.state?.over")
    page.go_back()
    expect(page).not_to_have_url(here)
    page.go_forward()
    expect(page).to_have_url(here)


def test_a_phone_has_room_for_the_title_while_an_answer_comes(chat: Page) -> None:
    chat.set_viewport_size(PHONE)
    ask(chat, "healthy")
    begin_long_answer(chat, "slow")
    expect(chat.locator("#meter-growing")).to_have_text(re.compile("≈"))

    title = chat.locator("#dialog-title").bounding_box()

    assert title
    assert title["width"] > PHONE["width"] / 5


def test_the_composer_breaks_lines_keeps_its_draft_and_sends_one_message_though_its_answer_was_lost(
    chat: Page, faults: list[str]
) -> None:
    send_nothing_empty(chat)
    keep_lines_through_a_reload(chat)
    assert faults == []
    send_again_what_was_lost(chat)
    type_on_while_it_is_sent(chat)
    hear_that_the_page_is_too_old(chat)
    # To the browser's console a lost answer is an error.
    faults.clear()


def send_nothing_empty(page: Page) -> None:
    composer(page).press("Enter")
    expect(page.locator("#composer-error")).to_be_visible()


def keep_lines_through_a_reload(page: Page) -> None:
    composer(page).fill("one")
    composer(page).press("Shift+Enter")
    composer(page).press_sequentially("two")
    composer(page).dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    expect(composer(page)).to_have_value("one\ntwo")
    expect(page.locator(".message-row")).to_have_count(0)

    page.reload()
    expect(composer(page)).to_have_value("one\ntwo")
    page.wait_for_load_state()


def send_again_what_was_lost(page: Page) -> None:
    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/send/", lose, times=1)
    composer(page).fill("Are you there?")
    composer(page).press("Enter")
    expect(page.locator("#composer-error")).to_contain_text("may not have arrived")

    composer(page).press("Enter")
    expect(composer(page)).to_have_value("")
    expect(answers(page)).to_have_count(1)
    expect(page.locator(".message-row.user")).to_have_count(1)
    send(page, "Are you there?")
    expect(page.locator(".message-row.user")).to_have_count(2)


def hear_that_the_page_is_too_old(page: Page) -> None:
    """Signed in again in another tab: to try again helps only after a reload, and what was typed is there then."""
    page.context.clear_cookies(name="csrftoken")
    composer(page).fill("From an old page")
    composer(page).press("Enter")
    expect(page.locator("#composer-error")).to_have_text("This page is too old. Reload it and try again.")

    page.reload()
    expect(composer(page)).to_have_value("From an old page")
    send(page, "From an old page")


def type_on_while_it_is_sent(page: Page) -> None:
    """Over a slow line, which the page tells; and what was typed on is there after a reload."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/send/", hold, times=1)
    composer(page).fill("Sent.")
    composer(page).press("Enter")
    composer(page).press_sequentially(" Not yet.")
    expect(page.locator("#sending")).to_have_text("Sending…")

    held.pop().continue_()
    expect(composer(page)).to_have_value(" Not yet.")
    expect(page.locator("#sending")).to_be_empty()
    page.reload()
    expect(composer(page)).to_have_value(" Not yet.")


def test_a_turn_goes_on_though_its_page_is_reloaded_and_closed_and_what_is_typed_meanwhile_waits(
    chat: Page, faults: list[str]
) -> None:
    begin_long_answer(chat, "slow")
    chat.reload()
    expect(chat.locator(".message-row.live")).to_contain_text("word")
    type_meanwhile(chat)
    expect(answers(chat).first).to_contain_text("word " * 59 + "word")

    begin_long_answer(chat, "slow again")
    address, other = chat.url, chat.context.new_page()
    chat.close()
    other.goto(address)
    expect(answers(other)).to_have_count(3)
    expect(answers(other).last).to_contain_text("word " * 59 + "word")


def type_meanwhile(page: Page) -> None:
    send(page, "second question")
    expect(page.get_by_text("waits its turn")).to_be_visible()
    expect(answers(page)).to_have_count(2)
    expect(page.get_by_text("waits its turn")).to_have_count(0)


def test_a_message_is_shown_although_the_socket_died_without_a_word(page: Page, scripted: Stack) -> None:
    """As after a computer has slept. What is typed while nothing comes is a draft."""
    sockets: list[WebSocketRoute] = []
    died = False

    def pass_on(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server().on_message(lambda text: None if died and socket is sockets[0] else socket.send(text))

    page.route_web_socket(re.compile("/ws/dialogs/"), pass_on)
    begin_dialog(page, scripted)
    ask(page, "healthy")

    died = True
    composer(page).fill("healthy again")
    composer(page).press("Enter")
    expect(composer(page)).to_have_value("")
    composer(page).fill("to be con")

    expect(answers(page)).to_have_count(2)
    expect(composer(page)).to_have_value("to be con")


def test_a_page_notices_by_itself_that_its_socket_died_says_so_and_connects_anew(
    page: Page, scripted: Stack, faults: list[str]
) -> None:
    sockets: list[WebSocketRoute] = []
    died = False

    def pass_on(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server().on_message(lambda text: None if died and socket is sockets[0] else socket.send(text))

    page.route_web_socket(re.compile("/ws/dialogs/"), pass_on)
    page.clock.install()
    begin_dialog(page, scripted)
    ask(page, "healthy")
    other = page.context.new_page()
    other.goto(page.url)
    page.evaluate(KEEP_WHAT_IS_SAID_OF_THE_CONNECTION)

    died = True
    ask(other, "healthy again")
    page.clock.fast_forward(10_000)
    assert len(sockets) == 1
    page.clock.fast_forward(21_000)

    expect(answers(page)).to_have_count(2)
    assert page.evaluate("() => window.said") == ["Connection lost. Reconnecting…", ""]


KEEP_WHAT_IS_SAID_OF_THE_CONNECTION = """() => {
  const connection = document.getElementById("connection");
  window.said = [];
  new MutationObserver(() => window.said.push(connection.textContent)).observe(connection, { childList: true });
}"""


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
    expect(waiting.get_by_text("This message has no answer yet.")).to_be_visible()
    waiting.get_by_role("button", name="Retry").click()
    expect(turn).to_contain_text("number 1 in line.")
    waiting.get_by_role("button", name="Stop").click()
    expect(turn).not_to_have_attribute("data-busy", "", timeout=5_000)

    send(waiting, "healthy again")
    expect(turn).to_contain_text("number 1 in line.")
    composer(chat).press("Escape")
    expect(answers(waiting)).to_have_count(1)
    expect(turn).not_to_contain_text("in line")
    scripted.shell("from dialogs.models import Provider; Provider.objects.update(max_concurrent=None)")


# As who presses Tab as soon as the question stands there: before htmx has settled what it put in.
TAB_AT_ONCE = """() => new MutationObserver(() => {
  setTimeout(() => document.querySelector("#confirm-slot dialog[open] button").focus());
}).observe(document.getElementById("confirm-slot"), { childList: true })"""


def test_what_a_model_repeats_is_inert_is_asked_for_again_and_the_page_speaks_chinese(
    chat: Page, faults: list[str]
) -> None:
    repeat_what_is_hostile(chat)
    ask_for_a_second_version(chat)
    take_the_focus_once(chat)
    speak_chinese(chat)


def repeat_what_is_hostile(page: Page) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))

    ask(page, "hostile <script>window.hacked = 1</script>")

    assert page.evaluate("() => window.hacked") is None
    assert page.locator(".message-row img, .message-row script, .message-row a[href^='javascript']").count() == 0
    assert not any("evil.example" in url for url in loaded)


def ask_for_a_second_version(page: Page) -> None:
    """The first is kept. Who goes from one to the other by keyboard stays on the switcher."""
    answers(page).last.get_by_role("button", name="Retry").click()
    expect(answers(page).last).to_contain_text("2/2")
    earlier, later = (
        answers(page).last.get_by_role("button", name=f"{which} version") for which in ("Earlier", "Later")
    )
    composer(page).press("Shift+Tab")
    earlier.focus()
    earlier.press("Enter")
    expect(answers(page).last).to_contain_text("1/2")
    expect(earlier).to_be_focused()
    earlier.press("Enter")
    later.press("Enter")
    expect(answers(page).last).to_contain_text("2/2")
    expect(later).to_be_focused()


def take_the_focus_once(page: Page) -> None:
    """A question that is asked before something is deleted."""
    page.evaluate(TAB_AT_ONCE)
    page.get_by_label("Dialog actions").click()
    page.locator(".menu-item-danger").click()
    page.locator("#confirm-slot dialog[open]").wait_for()
    page.wait_for_timeout(300)
    expect(page.locator("#confirm-slot dialog button")).to_be_focused()
    page.reload()


def speak_chinese(page: Page) -> None:
    page.get_by_label("Language", exact=True).click()
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("#meter")).to_contain_text("未知")
    page.wait_for_load_state()
    composer(page).fill("caution")
    composer(page).press("Enter")
    expect(page.locator("#meter")).to_contain_text("吃紧")
