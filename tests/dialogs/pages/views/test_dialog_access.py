"""Every address of a dialog, by every method, for everybody who is not its owner."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from django.test import Client

from dialogs.models import Dialog, QueuedMessage
from dialogs.turns.writes.messages import post_message
from tests.dialogs.pages.views.pages import HTMX

SAID = ("messages/{0}/edit/", "messages/{0}/edit/form/", "messages/{0}/show/")
PATHS = ("", "send/", "retry/", "stop/", "llm/", *SAID, "queued/{1}/cancel/")
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
EVERY_PATH = pytest.mark.parametrize("path", PATHS)
BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
Address = Callable[[UUID, str], str]


@pytest.fixture
def address(dialog: Dialog) -> Address:
    """Fills in the numbers of a message and of a waiting one, which are the dialog's own."""
    message, queued = (post_message(dialog=dialog, content=text) for text in ("Private", "Waiting"))
    return lambda dialog_id, path: f"/dialogs/{dialog_id}/{path.format(message.pk, queued.pk)}"


@EVERY_PATH
@BOTH
def test_the_dialog_of_another_is_as_one_that_never_was(
    as_bob: Client, dialog: Dialog, address: Address, path: str, headers: dict[str, str]
) -> None:
    for method in METHODS:
        ask = getattr(as_bob, method)

        foreign, missing = (ask(address(pk, path), headers=headers) for pk in (dialog.pk, uuid4()))

        assert foreign.status_code in {404, 405}, method
        assert foreign.status_code == missing.status_code, method
        assert len(foreign.content) == len(missing.content), method
        assert b"Private" not in foreign.content


@EVERY_PATH
def test_a_stranger_is_asked_to_sign_in(client: Client, dialog: Dialog, address: Address, path: str) -> None:
    answers = [getattr(client, method)(address(dialog.pk, path)) for method in METHODS]

    assert {response.status_code for response in answers} == {302}
    assert all(response["Location"].startswith("/login/") for response in answers)


@EVERY_PATH
def test_nobody_else_changes_anything(
    as_bob: Client, client: Client, dialog: Dialog, address: Address, path: str
) -> None:
    before = Dialog.objects.values().get()

    for browser in (as_bob, client):
        for method in METHODS:
            getattr(browser, method)(address(dialog.pk, path))

    assert Dialog.objects.values().get() == before
    assert list(dialog.messages.values_list("content", flat=True)) == ["Private"]
    assert QueuedMessage.objects.count() == 1


@EVERY_PATH
def test_its_owner_acts_by_post_alone(as_alice: Client, dialog: Dialog, address: Address, path: str) -> None:
    for method in ("put", "patch", "delete", "options"):
        assert getattr(as_alice, method)(address(dialog.pk, path)).status_code == 405


@pytest.mark.parametrize("dialog_id", ["1", "x", "%00", "../admin", "123e4567-e89b-12d3-a456-42661417400"])
def test_what_is_no_dialogs_number_is_not_found(as_alice: Client, dialog_id: str) -> None:
    assert as_alice.get(f"/dialogs/{dialog_id}/").status_code == 404


@BOTH
@EVERY_PATH
def test_every_answer_forbids_foreign_code(
    as_alice: Client, dialog: Dialog, address: Address, path: str, headers: dict[str, str]
) -> None:
    """Refusals and pages that are not there too: they also show what somebody typed."""
    ask = as_alice.post if path else as_alice.get

    for pk in (dialog.pk, uuid4()):
        policy = ask(address(pk, path), headers=headers)["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "object-src 'none'" in policy
        assert "unsafe" not in policy
