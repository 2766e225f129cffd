"""What a row says about tool calls, questions and what Dominds itself said; and how remediation stands."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.models import Course, Dialog, Message
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.writes.messages import post_message
from dialogs.turns.writes.tool_calls import add_results
from tests.builders import a_call, a_question, a_reading, an_answer
from tests.dialogs.pages.views.pages import Page, page


@pytest.fixture
def answer(dialog: Dialog) -> Message:
    """An answer without words, which calls tools."""
    post_message(dialog=dialog, content="Hello")
    return an_answer(dialog, "")


def shown(client: Client, dialog: Dialog) -> Page:
    return page(client, f"/dialogs/{dialog.pk}/")


def words(found: Page) -> str:
    return " ".join(found.text.split())


def with_id(found: Page, dom_id: str) -> dict[str, str | None]:
    (attrs,) = [attrs for _tag, attrs in found.tags if attrs.get("id") == dom_id]
    return attrs


# --- Calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "done"])
def test_a_call_that_is_tried_again_says_when_and_which_try_it_is_until_it_is_over(
    as_alice: Client, dialog: Dialog, answer: Message, status: str
) -> None:
    soon = timezone.now() + timedelta(seconds=8)
    a_call(answer, status=status, attempt=2, most_attempts=3, retry_at=soon)

    found = shown(as_alice, dialog)

    clocks = [attrs for _tag, attrs in found.tags if attrs.get("data-words") == "trying again in %s s"]
    assert ("trying again soon (2 of 3)" in words(found)) == (status == "pending")
    assert [datetime.fromisoformat(str(clock["data-until"])) for clock in clocks] == [soon] * (status == "pending")


def test_an_answer_that_only_calls_is_not_called_empty(as_alice: Client, dialog: Dialog, answer: Message) -> None:
    call = a_call(answer, name="read_file", arguments='{"path": "notes.txt"}')

    found = shown(as_alice, dialog)

    assert "The answer was empty." not in found.text
    assert "read_file path: notes.txt pending" in words(found)
    assert "open" not in with_id(found, f"call-{call.pk}")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("running", "running"),
        ("done", "1.5 s done"),
        ("failed", "1.5 s failed"),
        ("interrupted", "1.5 s interrupted"),
        ("withdrawn", "1.5 s withdrawn"),
    ],
)
def test_a_call_says_how_it_stands_and_how_long_it_took(
    as_alice: Client, dialog: Dialog, answer: Message, status: str, said: str
) -> None:
    now = timezone.now()
    finished = None if status == "running" else now + timedelta(seconds=1.5)
    call = a_call(answer, status=status, started_at=now, finished_at=finished)

    found = shown(as_alice, dialog)

    assert f"read_file {said}" in words(found)
    assert with_id(found, f"call-{call.pk}")["data-status"] == status


@pytest.mark.parametrize(
    ("result", "shown_as"),
    [("</pre><script>alert(1)</script>", "</pre><script>alert(1)</script>"), ("", "The result was empty.")],
)
def test_a_result_is_text_and_an_empty_one_is_said_to_be_one(
    as_alice: Client, dialog: Dialog, answer: Message, result: str, shown_as: str
) -> None:
    a_call(answer, status="done", result=result)

    found = shown(as_alice, dialog)

    assert found.offences == []
    assert shown_as in found.text


def test_a_withheld_result_is_readable_beside_what_the_model_was_told(
    as_alice: Client, dialog: Dialog, answer: Message
) -> None:
    Course.objects.update(level="critical")
    a_call(answer, status="done", result="Whole " * 1_000)
    dialog.refresh_from_db()
    add_results(dialog)
    dialog.save()

    text = words(shown(as_alice, dialog))

    assert "Withheld from the model while the context is short; the model was told:[System notice]" in text
    assert "Whole Whole" in text


# --- Questions ---------------------------------------------------------------------------------


def test_a_question_that_waits_is_pointed_at_and_can_be_answered_by_a_choice_or_in_words(
    as_alice: Client, dialog: Dialog, answer: Message
) -> None:
    question = a_question(dialog, answer, "Which year?", choices=["1998", "<1999>"])

    found = shown(as_alice, dialog)

    there = f"/dialogs/{dialog.pk}/questions/{question.pk}/answer/"
    assert sum(attrs.get("action") == there for tag, attrs in found.tags if tag == "form") == 2
    choices = [attrs["value"] for tag, attrs in found.tags if tag == "button" and attrs.get("name") == "answer"]
    assert choices == ["1998", "<1999>"]
    assert "hx-preserve" in with_id(found, f"question-form-{question.pk}")
    assert "The agent waits for your answer." in found.text
    assert f"#question-{question.pk}" in found.links()
    assert with_id(found, f"question-{question.pk}")["data-status"] == "pending"


@pytest.mark.parametrize(
    ("status", "given", "said"),
    [
        ("answered", "The red one", "You answered The red one"),
        ("answered", "", "You answered with the message that follows."),
        ("withdrawn", "", "Withdrawn without an answer."),
    ],
)
def test_a_question_that_is_closed_says_how(
    as_alice: Client, dialog: Dialog, answer: Message, status: str, given: str, said: str
) -> None:
    question = a_question(dialog, answer, status=status, answer=given)

    found = shown(as_alice, dialog)

    assert said in words(found)
    assert "The agent waits" not in found.text
    assert f"/questions/{question.pk}/answer/" not in str([attrs.get("action") for _tag, attrs in found.tags])


# --- What Dominds itself said --------------------------------------------------------------------


def inserted(dialog: Dialog, origin: str, content: str = "[System notice]") -> Message:
    dialog.refresh_from_db()
    message = add_message(dialog, role="user", origin=origin, content=content, parent=dialog.current_leaf)  # type: ignore[arg-type]
    dialog.save()
    return message


def prompted(dialog: Dialog, message: Message, **fields: Any) -> None:
    dialog.remediation_prompts.create(message=message, course=message.course, **fields)


@pytest.mark.parametrize("origin", ["remediation", "push", "handover"])
def test_what_nobody_typed_is_called_automatic(as_alice: Client, dialog: Dialog, answer: Message, origin: str) -> None:
    message = inserted(dialog, origin)

    found = shown(as_alice, dialog)

    assert with_id(found, f"message-{message.pk}")["aria-label"] == "Automatic message"
    assert "automatic [System notice]" in words(found)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"level": "caution"}, "automatic caution · reminders curated: not yet"),
        ({"level": "caution", "curated": True}, "automatic caution · reminders curated: yes"),
        (
            {"level": "critical", "remaining": 3, "curated": False},
            "automatic critical · 3 more reminders before a new course · reminders curated: no",
        ),
        ({"level": "critical", "remaining": 1}, "critical · 1 more reminder before a new course"),
        ({"level": "critical", "remaining": 0}, "critical · the last reminder before a new course"),
    ],
)
def test_a_prompt_says_how_urgent_it_was_and_what_came_of_it(
    as_alice: Client, dialog: Dialog, answer: Message, fields: dict[str, Any], said: str
) -> None:
    prompted(dialog, inserted(dialog, "remediation"), **fields)

    assert said in words(shown(as_alice, dialog))


def test_a_long_prompt_is_folded_and_there_as_a_whole(as_alice: Client, dialog: Dialog, answer: Message) -> None:
    message = inserted(dialog, "remediation", "One thing. " * 50 + "The end.")

    found = shown(as_alice, dialog)

    assert "open" not in with_id(found, f"unfold-{message.pk}")
    assert "The end." in found.text


def test_a_typed_message_shows_the_notice_that_it_carried(as_alice: Client, dialog: Dialog) -> None:
    message = post_message(dialog=dialog, content="How many are left?")
    assert isinstance(message, Message)
    prompted(dialog, message, level="critical", remaining=4, notice="Save what matters.")
    an_answer(dialog)

    found = shown(as_alice, dialog)

    assert "carried a notice critical · 4 more reminders before a new course" in words(found)
    assert "Save what matters." in found.text
    assert with_id(found, f"message-{message.pk}")["aria-label"] == "You"


# --- How remediation stands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("course", "said"),
    [
        ({"level": "caution", "caution_generations": 4}, "caution asked to curate reminders (next in 7 generations)"),
        ({"level": "caution", "caution_generations": 10}, "caution asked to curate reminders (next in 1 generation)"),
        ({"level": "caution", "caution_generations": 1, "due": "caution"}, "caution the agent is to be asked"),
        ({"level": "critical", "countdown_turns": 3}, "critical 3 more reminders before a new course"),
        ({"level": "critical", "countdown_turns": 0}, "critical a new course begins after the next answer"),
        ({"level": "critical", "countdown_turns": 0, "due": "clear"}, "critical a new course is to begin"),
    ],
)
def test_the_turn_says_what_the_agent_is_asked(
    as_alice: Client, dialog: Dialog, course: dict[str, Any], said: str
) -> None:
    Course.objects.update(**course)

    assert said in words(shown(as_alice, dialog))


def test_a_healthy_dialog_has_no_such_line(as_alice: Client, dialog: Dialog) -> None:
    assert not [attrs for _tag, attrs in shown(as_alice, dialog).tags if attrs.get("class") == "turn-health"]


def test_the_panel_says_why_nothing_is_curated(as_alice: Client, dialog: Dialog) -> None:
    Course.objects.update(level="caution", caution_generations=1)
    dialog.llm.tool_calling = "refused"
    dialog.llm.save()

    text = words(shown(as_alice, dialog))

    assert "The agent has no tools to write reminders with, so it writes none." in text
    assert "caution the agent has no tools to write reminders with, so it writes none" in text


def test_the_panel_counts_prompts_and_compliance(as_alice: Client, dialog: Dialog, answer: Message) -> None:
    Course.objects.update(level="critical", countdown_turns=2)
    for curated in (True, False, None):
        prompted(dialog, inserted(dialog, "remediation"), level="critical", remaining=2, curated=curated)

    text = words(shown(as_alice, dialog))

    assert "Before a new course 2 more reminders" in text
    assert "Prompts in this course 3reminders curated after 1, not after 1" in text


def test_a_generation_is_named_with_its_course(as_alice: Client, dialog: Dialog) -> None:
    Course.objects.update(number=2)
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, 250)

    assert "scripted/tinycourse 2, generation 1" in words(shown(as_alice, dialog))
