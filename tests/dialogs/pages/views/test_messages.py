"""What a person does in a dialog: with and without JavaScript, refused, and with input that is no text."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from dialogs.models import LLM, Dialog, Message, QueuedMessage
from dialogs.turns.writes.messages import edit_message
from tests.builders import an_answer
from tests.dialogs.driver.conftest import ask
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import HTMX, Page, page

FORM = "application/x-www-form-urlencoded"
BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])


def url(dialog: Dialog, action: str) -> str:
    return f"/dialogs/{dialog.pk}/{action}"


def edit(dialog: Dialog, message: Message) -> str:
    return url(dialog, f"messages/{message.pk}/edit/")


def answered(dialog: Dialog, content: str = "Hello") -> Message:
    """The question; its answer is the dialog's leaf."""
    question = ask(dialog, content)
    an_answer(dialog)
    dialog.refresh_from_db()
    return question


def said(dialog: Dialog) -> list[str]:
    return list(dialog.messages.order_by("seq").values_list("content", flat=True))


def accepted(response: object, dialog: Dialog, headers: dict[str, str]) -> bool:
    status = getattr(response, "status_code", 0)
    if headers:
        return status == 204
    return status == 302 and getattr(response, "url", "") == f"/dialogs/{dialog.pk}/#end"


@BOTH
def test_a_message_is_stored_and_the_turn_is_due(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    response = as_alice.post(url(dialog, "send/"), {"content": "Hello"}, headers=headers)

    dialog.refresh_from_db()
    assert accepted(response, dialog, headers)
    assert said(dialog) == ["Hello"]
    assert dialog.answer_due
    message = dialog.current_leaf
    assert message is not None
    assert (message.role, message.origin, message.seq, message.turn) == ("user", "typed", 1, 1)


@BOTH
def test_the_form_of_a_page_that_is_sent_twice_is_one_message(
    as_alice: Client, dialog: Dialog, headers: dict[str, str]
) -> None:
    form = {name: values[-1] for name, values in sent(page(as_alice, url(dialog, "")), "composer").items()}

    for _attempt in range(2):
        assert accepted(
            as_alice.post(url(dialog, "send/"), form | {"content": "Hello"}, headers=headers), dialog, headers
        )

    assert said(dialog) == ["Hello"]
    assert not QueuedMessage.objects.filter(dialog=dialog).exists()


@BOTH
def test_a_message_to_a_busy_dialog_waits_and_can_be_taken_back(
    as_alice: Client, dialog: Dialog, headers: dict[str, str]
) -> None:
    ask(dialog)

    as_alice.post(url(dialog, "send/"), {"content": "And"}, headers=headers)
    queued = QueuedMessage.objects.get(dialog=dialog)
    response = as_alice.post(url(dialog, f"queued/{queued.pk}/cancel/"), headers=headers)

    assert accepted(response, dialog, headers)
    assert said(dialog) == ["Hello"]
    assert not QueuedMessage.objects.filter(dialog=dialog).exists()


@BOTH
def test_the_last_message_is_said_anew(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    question = answered(dialog)

    response = as_alice.post(url(dialog, f"messages/{question.pk}/edit/"), {"content": "Hullo"}, headers=headers)

    assert accepted(response, dialog, headers)
    assert said(dialog) == ["Hello", "Hi.", "Hullo"]


@BOTH
def test_the_form_that_says_it_anew_holds_what_was_said(
    as_alice: Client, dialog: Dialog, headers: dict[str, str]
) -> None:
    question = answered(dialog, "<b>Hello</b>")

    html = as_alice.get(url(dialog, f"messages/{question.pk}/edit/form/"), headers=headers).content.decode()

    found = Page(html)
    forms = [attrs for tag, attrs in found.tags if tag == "form" and attrs.get("action") == edit(dialog, question)]
    assert [("hx-post" in attrs) for attrs in forms] == [bool(headers)]
    assert f">{escape('<b>Hello</b>')}</textarea>" in html
    assert ("<html" in html) is not bool(headers)
    assert found.offences == []


def test_the_form_stands_below_its_message_and_below_a_refused_answer_under_two_names(
    as_alice: Client, dialog: Dialog
) -> None:
    question = answered(dialog)

    for place in ("edit-1", "shorten-1"):
        fetched_by = HTMX | {"HX-Trigger": place}
        form = Page(as_alice.get(f"{edit(dialog, question)}form/", headers=fetched_by).content.decode())
        labels, fields = (
            [attrs.get(name) for tag, attrs in form.tags if tag == which]
            for which, name in (("label", "for"), ("textarea", "id"))
        )
        assert labels == fields == [f"text-of-{place}"]


def test_a_message_of_another_dialog_is_not_found(as_alice: Client, dialog: Dialog, a_dialog: object) -> None:
    question = answered(dialog)
    other = a_dialog()  # type: ignore[operator]

    for action in ("edit", "show"):
        there = url(other, f"messages/{question.pk}/{action}/")
        assert as_alice.post(there, {"content": "x"}).status_code == 404
    assert as_alice.get(f"{edit(other, question)}form/").status_code == 404
    assert as_alice.get(url(dialog, f"messages/{10**30}/edit/form/")).status_code == 404


@BOTH
def test_an_answer_is_asked_for_again(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    question = answered(dialog)

    response = as_alice.post(url(dialog, "retry/"), headers=headers)

    dialog.refresh_from_db()
    assert accepted(response, dialog, headers)
    assert (dialog.current_leaf, dialog.answer_due) == (question, True)
    assert said(dialog) == ["Hello", "Hi."]


@BOTH
def test_another_version_is_shown(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    question = answered(dialog)
    edit_message(dialog=dialog, message=question, content="Hullo")
    an_answer(dialog, "Hi again.")

    response = as_alice.post(url(dialog, f"messages/{question.pk}/show/"), headers=headers)

    assert accepted(response, dialog, headers)
    text = as_alice.get(url(dialog, "")).content.decode()
    assert ("Hi." in text, "Hi again." in text) == (True, False)


@BOTH
def test_an_answer_is_stopped(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    ask(dialog)
    Dialog.objects.update(lease_until=timezone.now() + timedelta(seconds=30))

    response = as_alice.post(url(dialog, "stop/"), headers=headers)

    dialog.refresh_from_db()
    assert accepted(response, dialog, headers)
    assert dialog.stop_requested


@BOTH
def test_another_llm_is_chosen(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    larger = LLM.objects.create(provider=dialog.llm.provider, model_id="large", context_length=128_000)

    response = as_alice.post(url(dialog, "llm/"), {"llm": larger.pk}, headers=headers)

    dialog.refresh_from_db()
    assert accepted(response, dialog, headers)
    assert dialog.llm == larger


@pytest.mark.parametrize("chosen", ["", "0", "x", "99999999999999999999999"])
def test_an_llm_that_is_not_offered_is_not_taken(as_alice: Client, dialog: Dialog, chosen: str) -> None:
    assert as_alice.post(url(dialog, "llm/"), {"llm": chosen}).status_code == 404


def test_a_refusal_by_htmx_is_a_sentence(as_alice: Client, dialog: Dialog) -> None:
    response = as_alice.post(url(dialog, "send/"), {"content": "  \n "}, headers=HTMX)

    assert response.status_code == 422
    assert response.content.decode() == "Write something first: the message is empty."


def test_a_refusal_without_javascript_keeps_what_was_typed(
    as_alice: Client, dialog: Dialog, settings: LazySettings
) -> None:
    settings.DOMINDS_MAX_MESSAGE_CHARS = 10

    response = as_alice.post(url(dialog, "send/"), {"content": "<b>eleven</b>"})

    html = response.content.decode()
    assert response.status_code == 422
    assert "longer than 10 characters" in html
    assert escape("<b>eleven</b>") in html
    assert [attrs for _tag, attrs in Page(html).tags if attrs.get("id") == "composer-error" and "hidden" not in attrs]


def test_taking_back_what_was_sent_meanwhile_is_refused_with_the_reason(as_alice: Client, dialog: Dialog) -> None:
    response = as_alice.post(url(dialog, f"queued/{10**17}/cancel/"), headers=HTMX)

    assert (response.status_code, "it was sent" in response.content.decode()) == (422, True)


@BOTH
def test_bytes_that_are_no_utf8_are_stored_as_far_as_they_are_text(
    as_alice: Client, dialog: Dialog, headers: dict[str, str]
) -> None:
    body = b"content=caf%E9+%FF%FE\xff+end"

    response = as_alice.post(url(dialog, "send/"), body, content_type=FORM, headers=headers)

    assert accepted(response, dialog, headers)
    (stored,) = said(dialog)
    assert stored.startswith("caf\ufffd")
    assert stored.endswith(" end")


def test_broken_utf8_in_a_multipart_form_is_stored_too(as_alice: Client, dialog: Dialog) -> None:
    body = b'--edge\r\nContent-Disposition: form-data; name="content"\r\n\r\nbad \xff\xfe bytes\r\n--edge--\r\n'

    response = as_alice.post(url(dialog, "send/"), body, content_type="multipart/form-data; boundary=edge")

    assert response.status_code == 302
    assert said(dialog) == ["bad \ufffd\ufffd bytes"]


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", f"{FORM}; charset=utf-16", "multipart/form-data; boundary="]
)
def test_a_form_that_cannot_be_read_gets_a_sentence(as_alice: Client, dialog: Dialog, content_type: str) -> None:
    response = as_alice.post(url(dialog, "send/"), b"content=x", content_type=content_type)

    assert response.status_code in {400, 422}
    assert Page(response.content.decode()).offences == []
    assert said(dialog) == []


def test_a_megabyte_is_a_message(as_alice: Client, dialog: Dialog) -> None:
    text = "0123456789abcdef" * 65_536

    response = as_alice.post(url(dialog, "send/"), {"content": text}, headers=HTMX)

    assert response.status_code == 204
    assert said(dialog) == [text]
    assert as_alice.get(url(dialog, "")).status_code == 200


@BOTH
def test_more_than_the_server_reads_gets_the_limit_told(
    as_alice: Client, dialog: Dialog, settings: LazySettings, headers: dict[str, str]
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

    response = as_alice.post(url(dialog, "send/"), "content=" + "x" * 2_000_000, content_type=FORM, headers=headers)

    text = response.content.decode()
    assert response.status_code == 413
    assert "more than 1.0" in text.replace("\xa0", " ")
    assert ("<html" in text) is not bool(headers)
    assert said(dialog) == []
