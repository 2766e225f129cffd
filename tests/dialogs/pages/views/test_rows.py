"""What a row of the transcript says about itself, and what can be done with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.models import Dialog, Message
from dialogs.turns.writes.messages import post_message
from tests.builders import a_generation, an_answer
from tests.dialogs.pages.views.pages import Page, page

AT_MOST_128: dict[str, Any] = {"manifest": {"options": {"max_output_tokens": 128}}}


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
    ("content", "fields", "said", "unsaid"),
    [
        ("Half", {"finish_reason": "length"}, "cut off: no room for more", "ended at"),
        ("Half", {"finish_reason": "context_window"}, "cut off: no room for more", "ended at"),
        ("Half", {"finish_reason": "content_filter"}, "cut off by the provider's filter", "no room"),
        (
            "Half",
            {"finish_reason": "length", "completion_tokens": 128} | AT_MOST_128,
            "ended at its 128 tokens",
            "no room",
        ),
        ("Whole", {"finish_reason": "stop"}, "Whole", "cut off"),
        ("Whole", {"finish_reason": "end_turn"}, "Whole", "cut off"),
        ("Whole", {"finish_reason": ""}, "Whole", "cut off"),
        ("", {}, "The answer was empty.", "cut off"),
        # Prompt tokens stand alone when nothing else was reported.
        ("Whole", {"prompt_tokens": 0}, "0 prompt tokens", "tokens unknown"),
    ],
)
def test_an_answer_says_how_it_ended_and_what_was_reported(
    as_alice: Client, asked: Dialog, content: str, fields: dict[str, Any], said: str, unsaid: str
) -> None:
    an_answer(asked, content, **fields)

    text = shown(as_alice, asked).text

    assert said in text
    assert unsaid not in text


def test_an_answer_that_came_while_the_clock_went_back_stands_below_its_question_and_tells_no_time(
    as_alice: Client, asked: Dialog
) -> None:
    begun = timezone.now()
    answer = an_answer(asked, "Good evening.", started_at=begun, finished_at=begun - timedelta(hours=1))
    Message.objects.filter(pk=answer.pk).update(created_at=begun - timedelta(hours=1))

    text = shown(as_alice, asked).text

    assert text.index("Hello") < text.index("Good evening.")
    assert "3600" not in text


def test_reasoning_is_kept_folded_beside_the_answer(as_alice: Client, asked: Dialog) -> None:
    answer = an_answer(asked)
    answer.parts = {"reasoning": "**Not** Markdown"}
    answer.save()

    found = shown(as_alice, asked)

    assert "**Not** Markdown" in found.text
    (reasoning,) = [attrs for _tag, attrs in found.tags if attrs.get("id") == f"reasoning-{answer.pk}"]
    assert "open" not in reasoning


@pytest.mark.parametrize(
    ("fields", "said", "details"),
    [
        ({"status": "stopped"}, "Stopped before the first word.", ""),
        ({"status": "failed", "error_code": "provider_unreachable"}, "The provider did not answer.", ""),
        (
            {"status": "failed", "error_code": "authentication_refused", "error_message": "<b>bad key</b>"},
            "The provider refused the key.",
            "<b>bad key</b>",
        ),
    ],
)
def test_a_stop_or_failure_before_the_first_word_says_so_with_the_providers_words_and_can_be_taken_back(
    as_alice: Client, asked: Dialog, fields: dict[str, str], said: str, details: str
) -> None:
    a_generation(asked, **fields)
    at_rest(asked)

    found = shown(as_alice, asked)

    assert said in found.text
    assert details in found.text
    assert ("What the provider said" in found.text) is bool(details)
    assert retries(found) == 1


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
