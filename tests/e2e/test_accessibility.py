"""What axe finds on each page, as a person at a desk has it and as one with a phone in the dark and in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.accessibility import violations
from tests.e2e.every_page import furnish
from tests.e2e.steps import DESK, NO_WIDER, PHONE, ask, begin_dialog, composer, play, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

FILTERED = ("?show=archived", "?show=trash", "?q=nothing", "?level=critical")
# As wide as a window of 1280 at 400 %.
NARROW = ViewportSize(width=320, height=568)
# A window of 1280 by 720 at 200 %.
ZOOMED = ViewportSize(width=640, height=360)
A_DIALOG = re.compile(r"dialogs/[0-9a-f-]{36}/")
ANSWER = {"text": "A `short` answer.\n\n- one\n- two", "usage": {"prompt_tokens": 900, "completion_tokens": 5}}
# All but the form of a title, which stands in for the heading of its page.
OPEN_ALL = "document.querySelectorAll('details:not(.title-edit)').forEach(details => { details.open = true })"


@pytest.fixture(scope="module")
def pages(stack: Stack) -> list[str]:
    """The addresses of all pages, each with something to show."""
    return [*furnish(stack), *FILTERED]


@pytest.fixture
def visitor(page: Page, stack: Stack, pages: list[str]) -> Page:
    assert len(pages) > 45
    sign_in(page, stack)
    return page


def each(page: Page, stack: Stack, addresses: list[str]) -> Iterator[str]:
    """Go to one after another. Who is signed in is not shown the page to sign in."""
    for address in addresses:
        if address != "login/":
            answer = page.goto(f"{stack.url}/{address}")
            assert answer is not None
            assert answer.ok, address
            yield address


@pytest.fixture
def said(visitor: Page) -> list[str]:
    """What is written to the console, of any kind: a policy that our own pages break would be told there."""
    found: list[str] = []
    visitor.on("console", lambda message: found.append(f"{visitor.url}: {message.text}"))
    return found


@pytest.mark.parametrize(("scheme", "size", "language"), [("light", DESK, "en"), ("dark", PHONE, "zh-hans")])
def test_no_page_breaks_a_rule_of_axe_is_too_wide_or_writes_to_the_console(
    visitor: Page, stack: Stack, pages: list[str], said: list[str], scheme: str, size: ViewportSize, language: str
) -> None:
    """With all that opens opened."""
    visitor.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    visitor.set_viewport_size(size)
    visitor.context.add_cookies([{"name": "django_language", "value": language, "url": stack.url}])

    found = [one for address in each(visitor, stack, pages) for one in faults_of(visitor, address)]
    visitor.context.clear_cookies(name="sessionid")
    visitor.goto(f"{stack.url}/login/")
    found += faults_of(visitor, "login/")

    visitor.wait_for_load_state("networkidle")
    assert (found, said) == ([], [])


def faults_of(page: Page, address: str) -> list[str]:
    page.evaluate(OPEN_ALL)
    found, size = violations(page, "html"), page.viewport_size
    assert size is not None
    for one in (size, NARROW):
        page.set_viewport_size(one)
        found += [] if page.evaluate(NO_WIDER) else [f"wider than {one['width']}"]
    page.set_viewport_size(size)
    return [f"{address}: {one}" for one in found]


def test_at_twice_the_size_no_dialog_is_too_wide_and_the_menus_at_the_top_are_reached_to_their_ends(
    visitor: Page, stack: Stack, pages: list[str]
) -> None:
    visitor.set_viewport_size(ZOOMED)
    dialogs = [address for address in pages if A_DIALOG.fullmatch(address)]
    assert len(dialogs) > 10

    for address in each(visitor, stack, ["", *dialogs]):
        assert visitor.evaluate(NO_WIDER), address
        for menu in visitor.locator(".topbar details.menu:visible").all():
            menu.locator("> summary").click()
            last = menu.locator(".menu-item").last
            last.scroll_into_view_if_needed()
            expect(last).to_be_in_viewport(ratio=0.9)
            visitor.keyboard.press("Escape")


def test_in_the_narrowest_window_the_title_of_a_dialog_can_be_pressed_and_read(
    visitor: Page, stack: Stack, pages: list[str]
) -> None:
    visitor.set_viewport_size(NARROW)
    visitor.goto(f"{stack.url}/{next(address for address in pages if A_DIALOG.fullmatch(address))}")

    box = visitor.locator(".title-edit > summary").bounding_box()

    assert box is not None
    assert box["width"] >= 48


LOOK = """selector => {
    const style = getComputedStyle(document.querySelector(selector));
    return [style.fill, style.outlineStyle, style.backgroundColor];
}"""


def test_in_forced_colours_level_selection_focus_and_buttons_are_seen(visitor: Page, stack: Stack) -> None:
    """As Windows' high contrast has them: backgrounds are gone, and colours that nobody chose again are a person's."""
    visitor.emulate_media(forced_colors="active", color_scheme="dark")
    visitor.goto(f"{stack.url}/")

    (fill, *_), (track, *_) = (visitor.evaluate(LOOK, f".meter-bar .meter-{part}") for part in ("fill", "track"))
    assert fill != track
    outlines = [visitor.evaluate(LOOK, f".tabs a{which}")[1] for which in ("[aria-current]", ":not([aria-current])")]
    assert outlines == ["double", "none"]
    assert visitor.evaluate(LOOK, ".button-primary")[2] != visitor.evaluate(LOOK, "body")[2]
    visitor.keyboard.press("Tab")
    visitor.keyboard.press("Tab")
    assert visitor.evaluate(LOOK, ":focus")[1] == "solid"


def test_a_conversation_is_begun_led_and_looked_into_by_keyboard_alone(visitor: Page, stack: Stack) -> None:
    play(stack, ANSWER, ANSWER)
    visitor.keyboard.press("Tab")
    expect(visitor.get_by_role("link", name="Skip to the content")).to_be_focused()
    visitor.keyboard.press("Enter")
    expect(visitor.locator("main")).to_be_focused()

    begin_dialog(visitor, stack)
    ask(visitor, "Hello")

    expect(composer(visitor)).to_be_focused()
    reach(visitor, "Context health: show every number")
    visitor.keyboard.press("Enter")
    expect(visitor.locator("#budget")).to_be_visible()
    assert violations(visitor, "body") == []

    visitor.keyboard.press("Escape")
    expect(visitor.locator("#budget")).to_be_hidden()


def reach(page: Page, name: str) -> None:
    """Go back with Shift and Tab until what has this name has the focus, where a person sees it."""
    for _step in range(60):
        page.keyboard.press("Shift+Tab")
        focused = page.locator(":focus")
        if focused.get_attribute("aria-label") == name or (focused.text_content() or "").strip() == name:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"Sixty steps back did not reach {name}")
