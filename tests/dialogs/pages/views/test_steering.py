"""Steering a dialog: a new course, an answer to the agent, its language, rest, and the agent on its own."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.models import LLM, AutonomousRun, Dialog, Provider, Question, ToolCall
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer
from tests.dialogs.compacting_builders import guard
from tests.dialogs.pages.views.pages import HTMX, Page, page

BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
RUN = {"goal": "Tidy the archive", "max_generations": "300"}


def url(dialog: Dialog, action: str) -> str:
    return f"/dialogs/{dialog.pk}/{action}/"


def spoken(dialog: Dialog) -> None:
    """One question with its answer; the dialog is idle."""
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)


def asked(dialog: Dialog) -> Question:
    """The agent has asked a person, and waits."""
    post_message(dialog=dialog, content="Hello")
    call = ToolCall.objects.create(
        message=an_answer(dialog), position=0, call_id="1", name="ask_human", status="waiting"
    )
    return Question.objects.create(dialog=dialog, tool_call=call, text="Which box?")


# --- A new course, an answer, a language, a rest -----------------------------------------------


def test_a_new_course_is_asked_about_before_it_begins(as_alice: Client, dialog: Dialog) -> None:
    spoken(dialog)
    back = f"/dialogs/{dialog.pk}/"

    asked_on_a_page = page(as_alice, f"{url(dialog, 'course')}?next={back}")
    modal = as_alice.get(url(dialog, "course"), headers=HTMX).content.decode()

    for promise in ("Taskdoc and all reminders are carried over", "stay readable", "model no longer sees them"):
        assert promise in asked_on_a_page.text
    assert back in asked_on_a_page.links()
    assert modal.startswith('<dialog class="modal"')
    assert "button-danger" not in modal
    assert dialog.courses.count() == 1

    assert as_alice.post(url(dialog, "course"))["Location"] == f"/dialogs/{dialog.pk}/#end"
    assert dialog.courses.get(number=2).opened_by == "user"


def test_a_busy_dialog_refuses_a_new_course_in_words(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")

    response = as_alice.post(url(dialog, "course"), headers=HTMX)

    assert (response.status_code, dialog.courses.count()) == (422, 1)
    assert "still answering" in response.content.decode()


@BOTH
def test_the_agents_question_is_answered(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    question = asked(dialog)

    response = as_alice.post(url(dialog, f"questions/{question.pk}/answer"), {"answer": "The red one"}, headers=headers)

    question.refresh_from_db()
    assert response.status_code == (204 if headers else 302)
    assert (question.status, question.answer) == ("answered", "The red one")


def test_an_answer_that_comes_too_late_is_refused_and_kept(as_alice: Client, dialog: Dialog) -> None:
    question = asked(dialog)
    Question.objects.update(status="withdrawn")

    response = as_alice.post(url(dialog, f"questions/{question.pk}/answer"), {"answer": "The red one"})

    assert response.status_code == 422
    assert "The red one" in response.content.decode()


def test_the_menu_leads_to_the_settings_where_the_agents_language_is_chosen(as_alice: Client, dialog: Dialog) -> None:
    here = url(dialog, "settings")
    assert here in page(as_alice, f"/dialogs/{dialog.pk}/").links()

    answers = [
        as_alice.post(url(dialog, action), {"next": here, **chosen})
        for action, chosen in (("language", {"language": "zh-hans"}), ("own-tools", {"own_tools": "off"}))
    ]

    found = page(as_alice, here)
    assert [answer["Location"] for answer in answers] == [here, here], "each leads back to it"
    assert "Settings of this dialog" in found.text
    assert "Saved." in found.text
    assert Dialog.objects.get().work_language == "zh-hans"
    assert "zh-hans" in [attrs["value"] for tag, attrs in found.tags if "selected" in attrs]


@pytest.mark.parametrize("language", ["", "xx", "English"])
def test_a_language_that_dominds_does_not_speak_is_not_found(as_alice: Client, dialog: Dialog, language: str) -> None:
    assert as_alice.post(url(dialog, "language"), {"language": language}).status_code == 404
    assert Dialog.objects.get().work_language == "en"


def test_compaction_is_switched_off_and_on_for_a_dialog(as_alice: Client, dialog: Dialog) -> None:
    LLM.objects.update(compaction="automatic")
    here = url(dialog, "settings")
    assert "you can compact and ask again" in page(as_alice, here).text

    as_alice.post(url(dialog, "compacted-by-itself"), {"compaction": "off"})

    assert Dialog.objects.get().compaction == "off"
    assert "Switch on" in page(as_alice, here).text
    as_alice.post(url(dialog, "compacted-by-itself"), {"compaction": "automatic"})
    assert Dialog.objects.get().compaction == "automatic"
    assert as_alice.post(url(dialog, "compacted-by-itself"), {"compaction": "sometimes"}).status_code == 404


def test_what_staff_switched_off_is_not_switched_on_in_a_dialog_and_off_says_what_a_server_would_do_that_cuts(
    as_alice: Client, dialog: Dialog
) -> None:
    LLM.objects.update(compaction="automatic")
    Provider.objects.update(kind="openai", base_url="http://127.0.0.1:11434/v1")
    assert "would read only a part of it without a word" in page(as_alice, url(dialog, "settings")).text

    LLM.objects.update(compaction="off")

    said = page(as_alice, url(dialog, "settings")).text
    assert "Switched off for this LLM. Staff can switch it on again in the admin." in said
    assert "Switch on" not in said


def test_own_tools_are_switched_off_and_on_and_the_page_says_what_they_cost(as_alice: Client, dialog: Dialog) -> None:
    guard(dialog, 30_000)
    before = page(as_alice, url(dialog, "settings")).text
    assert re.search(r"≈\d+ tokens of each request, [\d.]+ % of the room: add_reminder", before)

    as_alice.post(url(dialog, "own-tools"), {"own_tools": "off"})

    assert "they are switched off in this dialog" in page(as_alice, url(dialog, "settings")).text
    as_alice.post(url(dialog, "own-tools"), {"own_tools": "automatic"})
    assert Dialog.objects.get().own_tools == "automatic"
    assert as_alice.post(url(dialog, "own-tools"), {"own_tools": "some"}).status_code == 404


@BOTH
def test_a_person_lets_the_dialog_rest_and_go_on(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    as_alice.post(url(dialog, "pause"), headers=headers)
    paused = Dialog.objects.get().paused_by
    as_alice.post(url(dialog, "go-on"), headers=headers)

    assert (paused, Dialog.objects.get().paused_by) == ("person", "")


# --- Starting a run ---------------------------------------------------------------------------


def test_the_form_says_what_will_happen(as_alice: Client, dialog: Dialog) -> None:
    on_a_page = page(as_alice, url(dialog, "run"))
    modal = as_alice.get(url(dialog, "run"), headers=HTMX).content.decode()

    assert "when the agent says that it is done, or at the limit" in on_a_page.text
    assert ("input", "50") in [(tag, attrs.get("value")) for tag, attrs in on_a_page.tags]
    assert modal.startswith('<dialog class="modal')


@BOTH
def test_a_run_starts(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    response = as_alice.post(url(dialog, "run"), RUN, headers=headers)

    run = AutonomousRun.objects.get()
    assert response.status_code == (204 if headers else 302)
    assert (run.goal, run.max_generations) == ("Tidy the archive", 300)


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ({"goal": ""}, "Write down the goal"),
        ({"goal": "x" * 20_001}, "20,000"),
        ({"goal": "</textarea><script>alert(1)</script>", "max_generations": "0"}, "between 1 and 10,000"),
        ({"max_generations": ""}, "between 1 and 10,000"),
        ({"max_generations": "many"}, "between 1 and 10,000"),
        ({"max_generations": "0"}, "between 1 and 10,000"),
        ({"max_generations": "10001"}, "between 1 and 10,000"),
        ({"max_generations": "9" * 5000}, "between 1 and 10,000"),
    ],
)
def test_a_refusal_keeps_what_was_typed_as_text(
    as_alice: Client, dialog: Dialog, typed: dict[str, str], complaint: str
) -> None:
    form = RUN | typed

    response = as_alice.post(url(dialog, "run"), form)
    fragment = as_alice.post(url(dialog, "run"), form, headers=HTMX)

    again = Page(response.content.decode())
    assert (response.status_code, fragment.status_code, AutonomousRun.objects.count()) == (422, 422, 0)
    assert complaint in again.text
    assert again.offences == []
    assert form["goal"] in again.text
    assert form["max_generations"] in [attrs.get("value") for _tag, attrs in again.tags]
    # The form is still open there: it takes the words alone.
    assert complaint in fragment.content.decode()
    assert "<" not in fragment.content.decode()


@BOTH
def test_a_person_ends_the_run(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    start_run(dialog=dialog, goal="Tidy the archive", max_generations=300)
    Dialog.objects.update(answer_due=True, lease_until=timezone.now() + timedelta(seconds=30))

    response = as_alice.post(url(dialog, "run/end"), headers=headers)

    run = AutonomousRun.objects.get()
    assert response.status_code == (204 if headers else 302)
    assert (run.ended_by, run.ended_at is None) == ("person", False)
    assert Dialog.objects.get().stop_requested
