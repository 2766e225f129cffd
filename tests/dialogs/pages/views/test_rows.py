"""What a row of the transcript says about itself, and what can be done with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.models import Dialog, Message
from dialogs.turns.writes.messages import post_message
from tests.builders import a_generation, an_answer
from tests.dialogs.pages.views.pages import Page, page


@pytest.fixture
def asked(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    return dialog


def shown(client: Client, dialog: Dialog) -> Page:
    return page(client, f"/dialogs/{dialog.pk}/")


def forms(found: Page) -> list[str]:
    return [str(attrs.get("action")) for tag, attrs in found.tags if tag == "form"]


def retries(found: Page) -> int:
    return sum(action.endswith("/retry/") for action in forms(found))


def at_rest(dialog: Dialog) -> None:
    dialog.answer_due, dialog.handled_seq = False, dialog.wake_seq
    dialog.save()


@pytest.mark.parametrize(
    ("finish_reason", "words"),
    [
        ("length", "cut off: no room for more"),
        ("context_window", "cut off: no room for more"),
        ("content_filter", "cut off by the provider's filter"),
    ],
)
def test_an_answer_that_was_cut_off_says_why(as_alice: Client, asked: Dialog, finish_reason: str, words: str) -> None:
    an_answer(asked, "Half", finish_reason=finish_reason)

    assert words in shown(as_alice, asked).text


def test_an_answer_that_ended_at_its_own_maximum_is_not_said_to_lack_room(as_alice: Client, asked: Dialog) -> None:
    an_answer(
        asked, "Half", finish_reason="length", completion_tokens=128, manifest={"options": {"max_output_tokens": 128}}
    )

    found = shown(as_alice, asked).text

    assert "ended at its 128 tokens" in found
    assert "no room" not in found


@pytest.mark.parametrize("finish_reason", ["stop", "end_turn", ""])
def test_a_whole_answer_carries_no_badge(as_alice: Client, asked: Dialog, finish_reason: str) -> None:
    an_answer(asked, "Whole", finish_reason=finish_reason)

    assert "cut off" not in shown(as_alice, asked).text


def test_an_answer_that_came_while_the_clock_went_back_stands_below_its_question_and_tells_no_time(
    as_alice: Client, asked: Dialog
) -> None:
    begun = timezone.now()
    answer = an_answer(asked, "Good evening.", started_at=begun, finished_at=begun - timedelta(hours=1))
    Message.objects.filter(pk=answer.pk).update(created_at=begun - timedelta(hours=1))

    text = shown(as_alice, asked).text

    assert text.index("Hello") < text.index("Good evening.")
    assert "3600" not in text


def test_an_empty_answer_is_said_to_be_one(as_alice: Client, asked: Dialog) -> None:
    an_answer(asked, "")

    assert "The answer was empty." in shown(as_alice, asked).text


def test_prompt_tokens_stand_alone_when_nothing_else_was_reported(as_alice: Client, asked: Dialog) -> None:
    an_answer(asked, prompt_tokens=0)

    text = shown(as_alice, asked).text
    assert "0 prompt tokens" in text
    assert "tokens unknown" not in text


def test_reasoning_is_kept_folded_beside_the_answer(as_alice: Client, asked: Dialog) -> None:
    answer = an_answer(asked)
    answer.parts = {"reasoning": "**Not** Markdown"}
    answer.save()

    found = shown(as_alice, asked)

    assert "**Not** Markdown" in found.text
    (reasoning,) = [attrs for _tag, attrs in found.tags if attrs.get("id") == f"reasoning-{answer.pk}"]
    assert "open" not in reasoning


def test_a_stop_before_the_first_word_says_so_and_can_be_taken_back(as_alice: Client, asked: Dialog) -> None:
    a_generation(asked, status="stopped")
    at_rest(asked)

    found = shown(as_alice, asked)

    assert "Stopped before the first word." in found.text
    assert retries(found) == 1


def test_a_failure_without_words_of_the_provider_has_no_details(as_alice: Client, asked: Dialog) -> None:
    a_generation(asked, status="failed", error_code="provider_unreachable")
    at_rest(asked)

    found = shown(as_alice, asked)

    assert "The provider did not answer." in found.text
    assert "What the provider said" not in found.text


def test_a_stop_that_was_asked_for_is_not_offered_again(as_alice: Client, asked: Dialog) -> None:
    a_generation(asked, partial_text="One")
    Dialog.objects.update(stop_requested=True)

    found = shown(as_alice, asked)

    assert "Stopping…" in found.text
    assert not [action for action in forms(found) if action.endswith("/stop/")]


def test_every_form_carries_a_token_and_every_field_a_label(as_alice: Client, asked: Dialog) -> None:
    an_answer(asked)

    found = shown(as_alice, asked)

    posts = [attrs for tag, attrs in found.tags if tag == "form" and attrs.get("method") == "post"]
    tokens = [attrs for _tag, attrs in found.tags if attrs.get("name") == "csrfmiddlewaretoken"]
    assert len(tokens) == len(posts)
    labelled = {attrs.get("for") for tag, attrs in found.tags if tag == "label"}
    fields = [attrs for tag, attrs in found.tags if tag in {"textarea", "select", "input"}]
    assert [attrs for attrs in fields if attrs.get("type") != "hidden" and attrs.get("id") not in labelled] == []


def test_what_was_typed_stands_in_the_fields_as_it_is(as_alice: Client, dialog: Dialog) -> None:
    words = "</textarea></template><script>alert(1)</script>"
    message = post_message(dialog=dialog, content=words)

    found = shown(as_alice, dialog)
    form = page(as_alice, f"/dialogs/{dialog.pk}/messages/{message.pk}/edit/form/")

    assert (found.offences, form.offences) == ([], [])
    assert found.text.count(words) + form.text.count(words) >= 3
