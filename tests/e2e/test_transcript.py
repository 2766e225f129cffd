"""The transcript in a real Chromium: what a reader has opened or is writing stays while the dialog goes on."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, answers, ask, begin_dialog, composer, play, rest, send
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
Agent.objects.create(name="Helper", slug="helper", llm=LLM.objects.create(provider=provider, model_id="tiny"))
"""
DIALOG = """
from dialogs.models import Dialog, Question, ToolCall
from dialogs.transcript.writes.marks import set_pin
from dialogs.transcript.writes.dialog_row import lock, save
from tests.builders import a_call, a_course, a_question, an_answer
from tests.dialogs.compaction_runs import an_applied_run
from django.db import transaction
dialog = Dialog.objects.latest("created_at")
def tell():
    with transaction.atomic():
        save(lock(dialog))
"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(stack, {"text": "It was **so**."})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, scripted: Stack, faults: list[str]) -> Page:
    """A dialog with one exchange."""
    begin_dialog(page, scripted)
    ask(page, "What was it like long ago?")
    return page


def happens(stack: Stack, code: str) -> None:
    """Something in the dialog, in the worker's stead; browsers are told."""
    stack.shell(f"{DIALOG}\n{code}\ntell()")


def test_an_earlier_course_that_was_opened_stays_open_while_the_dialog_goes_on(chat: Page, scripted: Stack) -> None:
    happens(scripted, "a_course(dialog)")
    earlier = chat.locator(".earlier-course").first
    expect(earlier).not_to_contain_text("It was so.")

    earlier.locator("summary").click()
    expect(earlier).to_contain_text("It was so.")

    happens(scripted, "an_answer(dialog, 'I go on.')")
    expect(chat.locator("#rows")).to_contain_text("I go on.")
    expect(earlier).to_contain_text("It was so.")

    happens(scripted, "a_course(dialog, opened_by='auto')")
    expect(chat.locator("#course-3")).to_be_visible()
    expect(earlier).to_have_attribute("open", "")
    expect(earlier).to_contain_text("It was so.")
    expect(chat.locator(".earlier-course")).to_have_count(2)


def test_what_is_read_and_typed_stays_while_calls_come_back_and_the_question_is_found_and_answered(
    chat: Page, scripted: Stack
) -> None:
    happens(
        scripted,
        "answer = an_answer(dialog, 'Two things.')\n"
        "a_question(dialog, answer, choices=['1998', '1999'])\n"
        "a_call(answer, status='running')",
    )
    call, field = chat.locator(".call").last, chat.get_by_label("Or answer in your own words")
    call.locator("summary").click()
    field.fill("My own words, half")

    happens(scripted, "ToolCall.objects.filter(status='running').update(status='done', result='Twelve letters')")
    expect(call).to_contain_text("Twelve letters")
    expect(call).to_have_attribute("open", "")
    expect(field).to_have_value("My own words, half")
    expect(field).to_be_focused()

    chat.get_by_role("link", name="Go to the question").click()
    chat.get_by_role("button", name="1999").click()
    expect(chat.locator(".question-answer")).to_have_text("You answered 1999")
    expect(chat.locator("#rows > .assistant").last).to_contain_text("It was so.")
    expect(chat.get_by_role("link", name="Go to the question")).to_have_count(0)


# A browser runs an observer right after the script that changed the page: nobody can press anything sooner.
PRESS_AT_ONCE = """id => new MutationObserver((changes, observer) => {
    const added = changes.flatMap(({ addedNodes }) => [...addedNodes]).filter((node) => node.querySelector);
    // What stands in a message's menu is there when it is opened.
    for (const node of added) node.querySelector(".message-menu:not([open]) > summary")?.click();
    const link = added.map((node) => node.querySelector(`a[id^=${id}]`)).find(Boolean);
    if (!link) return;
    observer.disconnect();
    link.click();
}).observe(document.body, { childList: true, subtree: true })"""


def test_a_link_works_from_the_moment_it_is_there_fetched_or_brought_by_the_socket(chat: Page, scripted: Stack) -> None:
    happens(scripted, "an_applied_run(dialog, view=[{'message': dialog.current_leaf_id}])")
    chat.evaluate(PRESS_AT_ONCE, "seen-")
    chat.get_by_text("What was written instead").click()
    expect(chat.locator(".seen-modal")).to_be_visible()

    chat.keyboard.press("Escape")
    expect(chat.locator(".seen-modal")).to_be_hidden()
    chat.evaluate(PRESS_AT_ONCE, "generation-seen-")
    happens(scripted, "an_answer(dialog, 'I go on.')")
    expect(chat.locator(".seen-modal")).to_be_visible()


# Playwright types a long text for minutes, letter by letter; this is what a paste leaves behind.
PASTE = """([field, text]) => {
    field.focus();
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }));
}"""


def paste(page: Page, text: str) -> None:
    page.evaluate(PASTE, [composer(page).element_handle(), text])


def has(page: Page, text: str) -> bool:
    return bool(page.evaluate("([field, text]) => field.value === text", [composer(page).element_handle(), text]))


def test_a_pasted_megabyte_is_sent_whole(chat: Page, scripted: Stack) -> None:
    paste(chat, "\n".join(f"{number:06d} the pump runs and nothing else was seen" for number in range(20_000)))

    composer(chat).press("Enter")

    sent = chat.locator(".message-row.user").last
    expect(sent).to_contain_text("019999 the pump runs", timeout=PATIENCE_MS)
    rest(chat)
    assert has(chat, "")
    ask(chat, "And now?")


def test_a_long_message_is_folded_until_its_writer_wants_all_of_it(chat: Page, scripted: Stack) -> None:
    paste(chat, "\n".join(f"{number:03d} the pump runs" for number in range(500)))
    composer(chat).press("Enter")
    mine = chat.locator(".message-row.user").last
    expect(mine.get_by_text("Show all")).to_be_visible()
    rest(chat)
    text, control = mine.locator(".message-text"), mine.locator(".unfold > summary")
    assert violations(chat, ".rows") == []
    small = text.bounding_box() or {}

    control.press("Enter")

    expect(control).to_have_text("Show less", use_inner_text=True)
    large = text.bounding_box() or {}
    assert small["height"] < 120
    assert large["height"] > 5_000
    chat.keyboard.press("Enter")
    expect(control).to_have_text("Show all", use_inner_text=True)


def test_what_is_copied_is_what_was_written(chat: Page) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows, written = chat.locator(".message-row"), ("What was it like long ago?", "It was **so**.")

    for row, words in zip(rows.all(), written, strict=True):
        row.get_by_role("button", name="Copy").click()

        expect(row.get_by_role("button", name="Copied")).to_be_visible()
        assert chat.evaluate("() => navigator.clipboard.readText()") == words


def test_a_message_is_said_anew_by_keyboard_while_its_row_changes(chat: Page, scripted: Stack) -> None:
    mine = chat.locator(".message-row.user").last
    edit, field = mine.locator(".edit > summary"), mine.get_by_label("Your message")
    edit.press("Enter")
    expect(field).to_be_focused()
    expect(field).to_have_value("What was it like long ago?")
    expect(mine.locator(".message-text")).to_be_hidden()
    assert violations(chat, ".rows") == []
    chat.keyboard.press("Escape")
    expect(edit).to_be_focused()
    edit.press("Enter")
    field.fill("And then?")

    happens(
        scripted, "set_pin(dialog=dialog, message_id=dialog.messages.filter(role='user').latest('seq').pk, pinned=True)"
    )

    expect(mine.locator(".pill-pinned")).to_be_attached()
    expect(field).to_be_focused()
    expect(field).to_have_value("And then?")
    mine.get_by_role("button", name="Send again").press("Enter")
    expect(mine.locator(".message-text")).to_have_text("And then?")
    rest(chat)
    expect(answers(chat)).to_have_count(1)


def test_what_is_said_anew_is_followed_to_its_end_and_the_way_there_lies_over_no_text(
    chat: Page, scripted: Stack
) -> None:
    mine, jump = chat.locator(".message-row.user"), chat.locator("#jump")
    mine.get_by_text("Edit").click()
    expect(mine.locator("textarea")).to_be_focused()
    # Nobody is told to jump to what is in sight.
    expect(jump).to_be_hidden()
    mine.get_by_role("button", name="Send again").click()
    expect(mine).to_contain_text("2/2")
    rest(chat)

    happens(scripted, "an_answer(dialog, 'A line.\\n\\n' * 60)")
    expect(answers(chat).last).to_contain_text("A line.")
    expect(answers(chat).last.locator(".message-foot")).to_be_in_viewport()
    expect(jump).to_be_hidden()

    chat.locator("#scroller").evaluate("(scroller) => { scroller.scrollTop = 0; }")
    expect(jump).to_be_visible()
    box, scroller = jump.bounding_box(), chat.locator("#scroller").bounding_box()
    assert box is not None
    assert scroller is not None
    assert box["y"] >= scroller["y"] + scroller["height"]


def test_what_is_longer_than_a_message_may_be_is_refused_in_words_and_stays(page: Page, scripted: Stack) -> None:
    begin_dialog(page, scripted)
    words = "0123456789" * 200_001
    paste(page, words)

    composer(page).press("Enter")

    expect(page.get_by_role("alert").filter(has_text="2,000,000")).to_be_visible(timeout=PATIENCE_MS)
    assert has(page, words)


@pytest.mark.parametrize("child", ["valkey", "web", "turns"])
def test_an_open_page_goes_on_by_itself_after_a_kill(page: Page, scripted: Stack, child: str) -> None:
    """No reload by a person: the socket comes back, the answer arrives, and the next message is answered too."""
    begin_dialog(page, scripted)
    play(scripted, {"text": [f"word{number} " for number in range(40)], "delay": 0.1})
    send(page, "Count, please")
    expect(page.locator(".message-row.live")).to_contain_text("word3")
    composer(page).fill("Half a thou")

    os.kill(scripted.pid(child), signal.SIGKILL)

    if child == "web":
        expect(page.locator("#connection")).to_contain_text("Reconnecting", timeout=PATIENCE_MS)
    expect(answers(page)).to_contain_text("word39", timeout=PATIENCE_MS)
    assert has(page, "Half a thou")
    expect(page.locator("#connection")).to_be_empty(timeout=PATIENCE_MS)
    composer(page).fill("And once more")
    composer(page).press("Enter")
    expect(answers(page)).to_have_count(2, timeout=PATIENCE_MS)
