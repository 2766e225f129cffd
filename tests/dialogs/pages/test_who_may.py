"""Who may do what: every address of a dialog, by every method, for its owner, for another person and for a stranger.

The addresses are read from the table of addresses itself: one that is added is asked here without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.db import transaction
from django.test import Client
from django.urls import get_resolver

from dialogs.agents.writes import add_reminder, remove_reminder
from dialogs.models import Dialog
from dialogs.models.reminder import Author
from dialogs.turns.writes.messages import post_message
from tests.builders import a_course, a_question, an_answer
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.pages.views.pages import HTMX
from tests.dialogs.pages.views.test_hostile import routes

CANARY = "Only Alice knows"
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
# What a form sends: something that each action takes.
FORM = {
    "content": "Mine",
    "text": "Mine",
    "text-0": "Mine",
    "answer": "Mine",
    "title": "Mine",
    "goal": "Mine",
    "version": "1",
    "direction": "up",
    "pinned": "1",
    "priority": "1",
    "max_generations": "3",
    "away": "1",
    "language": "zh-hans",
    "own_tools": "off",
    "compaction": "off",
    "change": "add",
}
# A message without a picture has no such address; the tests of client-driven dialogs have one with.
NOT_HERE = {"messages/<number:message_id>/attachments/<number:place>/"}


@pytest.fixture
def rows(dialog: Dialog) -> dict[str, int]:
    """One of the dialog's own for each kind of number that stands in an address."""
    for _each in range(2):
        add_reminder(dialog=dialog, content=CANARY, author=Author.PERSON)
    remove_reminder(dialog=dialog, number=2)
    post_message(dialog=dialog, content=CANARY)
    question = a_question(dialog, an_answer(dialog, CANARY))
    a_course(dialog)
    message, queued = (post_message(dialog=dialog, content=CANARY) for _each in range(2))
    run = a_run(dialog, status="applied", view=[{"content": CANARY, "kind": "summary"}])
    found = {"message_id": message, "queued_id": queued, "question_id": question, "run_id": run}
    found |= {"call_id": question.tool_call, "generation_id": dialog.generations.get()}
    return {name: row.pk for name, row in found.items()} | {"number": 2}


def addresses() -> Iterator[str]:
    """Of one dialog, behind its number."""
    begins = "dialogs/<uuid:dialog_id>/"
    return (one.removeprefix(begins) for one in routes(get_resolver()) if one.startswith(begins))


def address(dialog_id: UUID, path: str, rows: dict[str, int]) -> str:
    return f"/dialogs/{dialog_id}/" + re.sub(r"<number:(\w+)>", lambda name: str(rows.get(name[1], 0)), path)


def everything() -> dict[str, list[dict[str, Any]]]:
    models = chain(*(apps.get_app_config(app).get_models() for app in ("dialogs", "health")))
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


def forbids_foreign_code(response: Any) -> bool:
    policy = response["Content-Security-Policy"]
    return "default-src 'self'" in policy and "object-src 'none'" in policy and "unsafe" not in policy


# What staff alone may do is refused with 403 before anybody looks for the dialog; programs read by GET alone.
def test_there_are_many_addresses_and_its_owner_finds_what_is_there(
    as_alice: Client, dialog: Dialog, rows: dict[str, int]
) -> None:
    """Else the other tests would ask for what is not there for anybody."""
    found: dict[str, set[int]] = {}
    for path in addresses():
        with transaction.atomic():
            form = FORM | {"llm": str(dialog.llm_id)}
            answers = [ask(address(dialog.pk, path, rows), form) for ask in (as_alice.get, as_alice.post)]
            transaction.set_rollback(True)
        assert all(map(forbids_foreign_code, answers)), path
        found[path] = {response.status_code for response in answers}

    assert len(found) > 60
    assert {path for path, statuses in found.items() if statuses <= {404, 405}} == NOT_HERE


def test_the_dialog_of_another_is_as_one_that_never_was(as_bob: Client, dialog: Dialog, rows: dict[str, int]) -> None:
    before, nowhere = everything(), uuid4()

    for path in addresses():
        for method, headers in chain(zip(METHODS, repeat({})), (("get", HTMX), ("post", HTMX))):
            asked, ask = (method, path, headers), getattr(as_bob, method)
            foreign, missing = (ask(address(pk, path, rows), FORM, headers=headers) for pk in (dialog.pk, nowhere))
            assert foreign.status_code in {403, 404, 405}, asked
            assert (foreign.status_code, len(foreign.content)) == (missing.status_code, len(missing.content)), asked
            assert CANARY.encode() not in foreign.content, asked
            assert forbids_foreign_code(foreign), asked

    assert everything() == before


def test_a_stranger_is_asked_to_sign_in(client: Client, dialog: Dialog, rows: dict[str, int]) -> None:
    before = everything()

    for path in addresses():
        for method in METHODS:
            response = getattr(client, method)(address(dialog.pk, path, rows), FORM)
            assert response.status_code == 405 or response["Location"].startswith("/login/"), (method, path)

    assert everything() == before


# Signing in and out, how the page for it looks, whether the server lives; `/v1` has keys, the admin is Django's.
OPEN = ("login/", "logout/", "welcome/", "preferences/theme/", "preferences/language/", "healthz", "admin/")
API = ("v1/", "chat/completions")


def test_a_stranger_is_asked_to_sign_in_everywhere_else_too(client: Client, db: None) -> None:
    ways = [way for way in routes(get_resolver()) if not way.startswith((*OPEN, *API, "dialogs/<"))]
    assert len(ways) >= 30

    for way in ways:
        found = {ask(f"/{re.sub('<[^>]+>', '1', way)}").get("Location", "") for ask in (client.get, client.post)}
        assert all(where.startswith("/login/") for where in found), (way, found)


def test_its_owner_acts_by_post_alone(as_alice: Client, dialog: Dialog, rows: dict[str, int]) -> None:
    before = everything()

    for path in addresses():
        for method in ("put", "patch", "delete", "options"):
            assert getattr(as_alice, method)(address(dialog.pk, path, rows)).status_code in {403, 405}, (method, path)

    assert everything() == before


def test_looking_changes_nothing(as_alice: Client, dialog: Dialog, rows: dict[str, int]) -> None:
    before = everything()

    for path in addresses():
        as_alice.get(address(dialog.pk, path, rows), FORM)

    assert everything() == before


@pytest.mark.parametrize("dialog_id", ["1", "x", "%00", "../admin", "123e4567-e89b-12d3-a456-42661417400"])
def test_what_is_no_dialogs_number_is_not_found(as_alice: Client, dialog_id: str) -> None:
    assert as_alice.get(f"/dialogs/{dialog_id}/").status_code == 404
