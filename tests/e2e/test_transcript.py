"""The transcript in a real Chromium: what a reader has opened or is writing stays while the dialog goes on."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import MOST_CHARS, PATIENCE_MS, answers, ask, begin_dialog, composer, play, rest, send
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


MIDDLES = """buttons => buttons.map((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return Math.round(top + bottom);
})"""


def test_what_a_reader_has_opened_or_typed_stays_while_the_dialog_goes_on_and_what_comes_can_be_pressed_at_once(
    chat: Page, scripted: Stack
) -> None:
    read_and_type_while_a_call_comes_back(chat, scripted)
    answer_the_question(chat)
    read_an_earlier_course_while_others_begin(chat, scripted)
    press_a_link_that_was_fetched(chat, scripted)
    press_a_link_that_the_socket_brought(chat, scripted)


def read_and_type_while_a_call_comes_back(page: Page, stack: Stack) -> None:
    happens(
        stack,
        "answer = an_answer(dialog, 'Two things.')\n"
        "a_question(dialog, answer, choices=['1998', '1999'])\n"
        "a_call(answer, status='running')",
    )
    call, field = page.locator(".call").last, page.get_by_label("Or answer in your own words")
    call.locator("summary").click()
    field.fill("My own words, half")

    happens(stack, "ToolCall.objects.filter(status='running').update(status='done', result='Twelve letters')")
    expect(call).to_contain_text("Twelve letters")
    expect(call).to_have_attribute("open", "")
    expect(field).to_have_value("My own words, half")
    expect(field).to_be_focused()


def answer_the_question(page: Page) -> None:
    page.get_by_role("link", name="Go to the question").click()
    page.get_by_role("button", name="1999").click()
    expect(page.locator(".question-answer")).to_have_text("You answered 1999")
    expect(page.locator("#rows > .assistant").last).to_contain_text("It was so.")
    expect(page.get_by_role("link", name="Go to the question")).to_have_count(0)
    rest(page)


def read_an_earlier_course_while_others_begin(page: Page, stack: Stack) -> None:
    happens(stack, "a_course(dialog)")
    earlier = page.locator(".earlier-course").first
    expect(earlier).not_to_contain_text("It was so.")
    earlier.locator("summary").first.click()
    expect(earlier).to_contain_text("It was so.")

    happens(stack, "an_answer(dialog, 'I go on.')")
    expect(page.locator("#rows")).to_contain_text("I go on.")
    expect(earlier).to_contain_text("It was so.")

    happens(stack, "a_course(dialog, opened_by='auto')")
    expect(page.locator("#course-3")).to_be_visible()
    expect(earlier).to_have_attribute("open", "")
    expect(earlier).to_contain_text("It was so.")
    expect(page.locator(".earlier-course")).to_have_count(2)


def press_a_link_that_was_fetched(page: Page, stack: Stack) -> None:
    happens(stack, "an_answer(dialog, 'A third.')")
    happens(stack, "an_applied_run(dialog, view=[{'message': dialog.current_leaf_id}])")
    page.evaluate(PRESS_AT_ONCE, "seen-")
    page.get_by_text("What was written instead").click()
    expect(page.locator(".seen-modal")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".seen-modal")).to_be_hidden()


def press_a_link_that_the_socket_brought(page: Page, stack: Stack) -> None:
    page.evaluate(PRESS_AT_ONCE, "generation-seen-")
    happens(stack, "an_answer(dialog, 'I go on and on.')")
    expect(page.locator(".seen-modal")).to_be_visible()


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


def test_long_texts_are_copied_folded_sent_whole_and_refused_in_words_where_they_are_too_long(
    chat: Page, faults: list[str]
) -> None:
    copy_what_was_written(chat)
    fold_and_unfold(chat)
    send_a_megabyte(chat)
    assert faults == []
    refuse_what_is_longer(chat)
    # To the browser's console a refusal is an error.
    faults.clear()


def copy_what_was_written(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows, written = page.locator(".message-row"), ("What was it like long ago?", "It was **so**.")
    for row, words in zip(rows.all(), written, strict=True):
        row.get_by_role("button", name="Copy").click()
        expect(row.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("() => navigator.clipboard.readText()") == words


def fold_and_unfold(page: Page) -> None:
    """A long message is folded until its writer wants all of it."""
    paste(page, "\n".join(f"{number:03d} the pump runs" for number in range(500)))
    composer(page).press("Enter")
    mine = page.locator(".message-row.user").last
    expect(mine.get_by_text("Show all")).to_be_visible()
    rest(page)
    text, control = mine.locator(".message-text"), mine.locator(".unfold > summary")
    assert violations(page, ".rows") == []
    small = text.bounding_box() or {}

    control.press("Enter")

    expect(control).to_have_text("Show less", use_inner_text=True)
    large = text.bounding_box() or {}
    assert small["height"] < 120
    assert large["height"] > 5_000
    page.keyboard.press("Enter")
    expect(control).to_have_text("Show all", use_inner_text=True)


def send_a_megabyte(page: Page) -> None:
    paste(page, "\n".join(f"{number:06d} the pump runs and nothing else was seen" for number in range(20_000)))
    composer(page).press("Enter")
    sent = page.locator(".message-row.user").last
    expect(sent).to_contain_text("019999 the pump runs", timeout=PATIENCE_MS)
    rest(page)
    assert has(page, "")
    ask(page, "And now?")


def refuse_what_is_longer(page: Page) -> None:
    words = "0123456789" * (MOST_CHARS // 10 + 1)
    paste(page, words)
    composer(page).press("Enter")
    expect(page.get_by_role("alert").filter(has_text=f"{MOST_CHARS:,}")).to_be_visible(timeout=PATIENCE_MS)
    assert has(page, words)


def test_a_message_is_said_anew_by_keyboard_while_its_row_changes(chat: Page, scripted: Stack) -> None:
    mine = chat.locator(".message-row.user").last
    edit, field = mine.locator(".edit > summary"), mine.get_by_label("Your message")
    edit.press("Enter")
    expect(field).to_be_focused()
    expect(field).to_have_value("What was it like long ago?")
    expect(mine.locator(".message-text")).to_be_hidden()
    assert violations(chat, ".rows") == []
    for way_out, key in ((field, "Escape"), (mine.get_by_text("Cancel"), "Enter")):
        way_out.press(key)
        expect(edit).to_be_focused()
        edit.press("Enter")
        # It takes the focus a moment after it is opened.
        expect(field).to_be_focused()
    field.fill("And then?")

    happens(
        scripted, "set_pin(dialog=dialog, message_id=dialog.messages.filter(role='user').latest('seq').pk, pinned=True)"
    )

    expect(mine.locator(".pill-pinned")).to_be_attached()
    expect(field).to_be_focused()
    expect(field).to_have_value("And then?")
    field.press("Enter")
    expect(mine.locator(".message-text")).to_have_text("And then?")
    # The field is gone.
    expect(composer(chat)).to_be_focused()
    rest(chat)
    expect(answers(chat)).to_have_count(1)
    expect(chat.locator("#live-region > p").last).to_have_text("The agent has answered.")


def test_an_answer_that_came_before_the_page_saw_the_agent_at_work_is_announced_too(
    chat: Page, scripted: Stack
) -> None:
    expect(chat.locator("#live-region > p")).to_have_count(0)

    happens(scripted, "an_answer(dialog, 'At once.')")

    expect(chat.locator("#live-region > p")).to_have_text("The agent has answered.")


def test_what_was_typed_into_a_message_that_is_said_anew_in_another_tab_goes_into_the_composer(chat: Page) -> None:
    other = chat.context.new_page()
    other.goto(chat.url)
    for tab in (chat, other):
        tab.locator(".message-row.user").get_by_text("Edit").click()
    # Not the composer, which has the same label, while the form is on its way.
    chat.locator(".message-row.user").get_by_label("Your message").fill("What was it like then?")

    mine = other.locator(".message-row.user")
    mine.get_by_label("Your message").fill("And now?")
    mine.get_by_role("button", name="Send again").click()

    expect(composer(chat)).to_have_value("What was it like then?")
    expect(chat.get_by_role("alert").filter(has_text="changed elsewhere")).to_be_visible()
    expect(mine.locator(".message-text")).to_have_text("And now?")
    expect(composer(other)).to_have_value("")


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


def test_the_buttons_below_an_answer_go_to_the_next_line_together(chat: Page) -> None:
    buttons, places = answers(chat).locator("[data-copy], [action$='/retry/'] button, .message-menu > summary"), []

    for width in range(300, 420, 10):
        chat.set_viewport_size({"width": width, "height": 600})
        places.append(buttons.evaluate_all(MIDDLES))

    assert [len(set(middles)) for middles in places] == [1] * len(places)


def test_an_open_page_goes_on_by_itself_after_each_process_was_killed(page: Page, scripted: Stack) -> None:
    """No reload by a person: the socket comes back, the answer arrives, and the next message is answered too."""
    begin_dialog(page, scripted)
    for child in ("valkey", "web", "turns"):
        count = answers(page).count()
        begin_to_answer(page, scripted)
        os.kill(scripted.pid(child), signal.SIGKILL)
        if child == "web":
            expect(page.locator("#connection")).to_contain_text("Reconnecting", timeout=PATIENCE_MS)
        go_on_by_itself(page, child, count)


def begin_to_answer(page: Page, stack: Stack) -> None:
    play(stack, {"text": [f"word{number} " for number in range(40)], "delay": 0.1})
    send(page, "Count, please")
    expect(page.locator(".message-row.live")).to_contain_text("word3")
    composer(page).fill("Half a thou")


def go_on_by_itself(page: Page, killed: str, count: int) -> None:
    newest = answers(page).nth(count)
    expect(newest, f"after the end of {killed}").to_contain_text("word39", timeout=PATIENCE_MS)
    assert has(page, "Half a thou"), killed
    expect(page.locator("#connection"), f"after the end of {killed}").to_be_empty(timeout=PATIENCE_MS)
    rest(page)
    composer(page).fill("And once more")
    composer(page).press("Enter")
    expect(answers(page), f"after the end of {killed}").to_have_count(count + 2, timeout=PATIENCE_MS)
    rest(page)
