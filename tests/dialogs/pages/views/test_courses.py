"""What the transcript leaves out until it is asked for: earlier courses, and whole results of tools."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from dialogs.models import Course, Dialog, Message, ToolCall
from dialogs.turns.writes.messages import edit_message, post_message
from tests.builders import a_call, a_course, an_answer
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.pages.views.pages import HTMX, Page, page

BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])


@pytest.fixture
def second(dialog: Dialog) -> Dialog:
    """One exchange in course 1; course 2 is under way."""
    post_message(dialog=dialog, content="Tidy the <archive>")
    an_answer(dialog, "I **begin**.")
    a_course(dialog)
    an_answer(dialog, "I go on.")
    dialog.refresh_from_db()
    return dialog


@pytest.fixture
def call(second: Dialog) -> ToolCall:
    assert second.current_leaf is not None
    return a_call(second.current_leaf, status="done", result="<b>" + "x" * 5_000)


def url(dialog: Dialog, number: int = 1, query: str = "") -> str:
    return f"/dialogs/{dialog.pk}/courses/{number}/{query}"


def words(found: Page) -> str:
    return " ".join(found.text.split())


def buttons(found: Page) -> list[str]:
    return [str(attrs.get("action")) for tag, attrs in found.tags if tag == "form"]


# --- The way to a message ----------------------------------------------------------------------


def place(client: Client, dialog: Dialog, message: Message) -> str:
    return client.get(f"/dialogs/{dialog.pk}/messages/{message.pk}/").headers["Location"]


def test_a_message_is_reached_on_the_page_far_back_and_in_an_earlier_course(as_alice: Client, dialog: Dialog) -> None:
    history = a_history(dialog, pairs=60)
    said = f"/dialogs/{dialog.pk}/"

    assert place(as_alice, dialog, history[-1]) == f"{said}#message-{history[-1].pk}"
    assert place(as_alice, dialog, history[0]) == f"{said}?all=1#message-{history[0].pk}"
    a_course(dialog)
    an_answer(dialog, "I go on.")
    assert place(as_alice, dialog, history[0]) == f"{url(dialog)}?page=1#message-{history[0].pk}"
    assert place(as_alice, dialog, history[70]) == f"{url(dialog)}?page=2#message-{history[70].pk}"


def test_the_way_to_a_message_of_another_version_is_the_dialogs(as_alice: Client, dialog: Dialog) -> None:
    first = post_message(dialog=dialog, content="Tidy the archive")
    dialog.refresh_from_db()
    an_answer(dialog, "I begin.")
    edit_message(dialog=dialog, message=first, content="Tidy the attic")

    assert place(as_alice, dialog, first) == f"/dialogs/{dialog.pk}/#message-{first.pk}"


# --- Earlier courses ---------------------------------------------------------------------------


def test_an_earlier_course_is_folded_and_its_messages_stay_away(as_alice: Client, second: Dialog) -> None:
    found = page(as_alice, f"/dialogs/{second.pk}/")

    (folded,) = [attrs for tag, attrs in found.tags if "earlier-course" in str(attrs.get("class"))]
    assert "open" not in folded
    assert folded["hx-get"] == url(second)
    assert "Course 1 2 messages · 1 generation Tidy the <archive>" in words(found)
    assert "I begin." not in words(found)
    assert url(second) in found.links()


@pytest.mark.parametrize(
    ("opened_by", "said"),
    [
        ("agent", "The agent began it with clear_mind."),
        ("user", "You began it."),
        ("auto", "the countdown had run out"),
        ("recovery", "no longer fitted into the context window"),
    ],
)
def test_a_course_says_who_began_it_and_why_and_when(
    as_alice: Client, second: Dialog, opened_by: str, said: str
) -> None:
    moment = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    Course.objects.filter(number=2).update(opened_by=opened_by, opened_at=moment)

    text = words(page(as_alice, f"/dialogs/{second.pk}/"))

    assert f"Course 2 {'' if opened_by in ('agent', 'user') else 'It began by itself: '}" in text
    assert said in text
    assert "2026-03-04 05:06" in text


@pytest.mark.parametrize(
    ("carried", "said"),
    [
        ({"reminders": [1, 7], "taskdoc": True}, "Carried over: reminders 1, 7 the Taskdoc"),
        ({"reminders": [3]}, "Carried over: reminder 3"),
        (
            {"request": 5, "questions": [1]},
            "Carried over: your message that had no answer 1 question of the agent",
        ),
        ({"request": 5, "requests": 2}, "Carried over: 2 messages of yours that had no answer"),
        ({"reminders": [], "taskdoc": False, "request": None, "questions": []}, "Nothing was carried over."),
        ({}, "Nothing was carried over."),
    ],
)
def test_a_course_says_what_came_along(as_alice: Client, second: Dialog, carried: dict[str, Any], said: str) -> None:
    Course.objects.filter(number=2).update(carried=carried)

    assert said in words(page(as_alice, f"/dialogs/{second.pk}/"))


def test_the_first_course_needs_no_heading(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")

    assert "Course 1" not in page(as_alice, f"/dialogs/{dialog.pk}/").text


@BOTH
def test_opening_it_brings_its_messages_and_nothing_can_be_done_in_it(
    as_alice: Client, second: Dialog, headers: dict[str, str]
) -> None:
    """Without JavaScript it is a page with a way back."""
    found = page(as_alice, url(second), headers=headers)

    assert "Tidy the <archive> Copy I begin." in words(found)
    assert "I go on" not in found.text
    assert any(tag == "html" for tag, _attrs in found.tags) is not bool(headers)
    assert (f"/dialogs/{second.pk}/" in found.links()) is not bool(headers)
    assert not [action for action in buttons(found) if f"/dialogs/{second.pk}/" in action]
    assert found.offences == []
    assert as_alice.post(url(second)).status_code == 405


def test_a_long_one_comes_in_pages(as_alice: Client, second: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialogs.pages.reads.transcript.COURSE_PAGE_ROWS", 1)

    first = page(as_alice, url(second), headers=HTMX)
    last = page(as_alice, url(second, query="?page=2"), headers=HTMX)

    assert url(second, query="?page=2") in first.links()
    assert "I begin." in words(last)
    assert not [link for link in last.links() if "page=" in link]


@pytest.mark.parametrize("number", ["0", "-3", "x", "", "99"])
def test_a_page_that_is_none_is_the_first_or_empty(as_alice: Client, second: Dialog, number: str) -> None:
    found = page(as_alice, url(second, query=f"?page={number}"), headers=HTMX)

    assert ("I begin." in words(found)) is (number != "99")


def test_the_current_course_is_read_in_the_dialog(as_alice: Client, second: Dialog) -> None:
    assert as_alice.get(url(second, 2))["Location"] == f"/dialogs/{second.pk}/"


@BOTH
def test_a_course_that_is_none_or_of_another_branch_is_not_there(
    as_alice: Client, second: Dialog, headers: dict[str, str]
) -> None:
    other = second.courses.create(number=3)
    second.messages.create(course=other, seq=99, turn=1, role="user", origin="handover", content="Another branch")

    assert as_alice.get(url(second, 3), headers=headers).status_code == 404
    assert as_alice.get(url(second, 7), headers=headers).status_code == 404


# --- Whole results -----------------------------------------------------------------------------


def test_a_long_result_is_shown_by_its_beginning_and_the_whole_comes_as_text_and_not_as_html(
    as_alice: Client, second: Dialog, call: ToolCall
) -> None:
    found, there = page(as_alice, f"/dialogs/{second.pk}/"), f"/dialogs/{second.pk}/calls/{call.pk}/"
    assert "Show all 5,003 characters" in found.text
    assert there in found.links()
    assert found.text.count("x" * 1_900) == 1

    by_itself, in_place = as_alice.get(there), as_alice.get(there, headers=HTMX)

    assert by_itself["Content-Type"] == "text/plain; charset=utf-8"
    assert by_itself["X-Content-Type-Options"] == "nosniff"
    assert by_itself.content.decode() == call.result
    assert Page(in_place.content.decode()).text.strip() == call.result


def test_a_call_of_another_dialog_is_not_there(as_alice: Client, second: Dialog, call: ToolCall) -> None:
    other = Dialog.objects.create(owner=second.owner, agent=second.agent, llm=second.llm, active_at=second.active_at)

    assert as_alice.get(f"/dialogs/{other.pk}/calls/{call.pk}/").status_code == 404


# --- What a new course brings along ------------------------------------------------------------

RULE = "You must never delete the table of customers."


@pytest.fixture
def ruled(dialog: Dialog) -> Dialog:
    """Alice laid something down, and the agent answered."""
    post_message(dialog=dialog, content=RULE)
    an_answer(dialog, "I will not.")
    dialog.refresh_from_db()
    return dialog


def test_the_divider_says_what_was_carried_over_and_opens_to_show_it(as_alice: Client, ruled: Dialog) -> None:
    as_alice.post(f"/dialogs/{ruled.pk}/course/", {"what": "carry"})

    found = page(as_alice, f"/dialogs/{ruled.pk}/")
    assert "Carried over:" in words(found)
    assert re.search(r"handover ≈\d+ tokens", words(found))
    assert RULE in words(found)
    assert "Take the handover away" in words(found)
    as_alice.post(f"/dialogs/{ruled.pk}/courses/2/handover/", {"away": "1"})
    found = page(as_alice, f"/dialogs/{ruled.pk}/")
    assert "a handover, which you took away" in words(found)
    assert "Bring the handover back" in words(found)


def test_beginning_a_course_by_hand_offers_both_ways_and_the_divider_says_if_it_was_begun_empty(
    as_alice: Client, ruled: Dialog
) -> None:
    asked = page(as_alice, f"/dialogs/{ruled.pk}/course/")
    assert [attrs["value"] for tag, attrs in asked.tags if attrs.get("name") == "what"] == ["carry", "empty"]

    as_alice.post(f"/dialogs/{ruled.pk}/course/", {"what": "empty"})

    assert "Nothing was carried over." in words(page(as_alice, f"/dialogs/{ruled.pk}/"))


@pytest.mark.parametrize(("limit", "then"), [(60_000, "is sent as it is"), (3_500, "is compacted first")])
def test_going_back_says_how_much_that_is_and_whether_it_is_compacted(
    as_alice: Client, dialog: Dialog, limit: int, then: str
) -> None:
    guard(dialog, limit=limit)
    a_history(dialog, pairs=16)
    as_alice.post(f"/dialogs/{dialog.pk}/course/", {"what": "carry"})

    asked = words(page(as_alice, f"/dialogs/{dialog.pk}/courses/2/back/"))

    assert re.search(rf"the next request takes ≈[\d,]+ tokens, and {then}", asked)


def test_going_back_to_the_earlier_course_is_asked_about_first(as_alice: Client, second: Dialog) -> None:
    assert "stays stored" in words(page(as_alice, f"/dialogs/{second.pk}/courses/2/back/"))

    as_alice.post(f"/dialogs/{second.pk}/courses/2/back/")

    second.refresh_from_db()
    assert second.current_leaf is not None
    assert second.current_leaf.content == "I **begin**."
