"""A history that was looked up a moment ago is taken up as it was seen, unless something has happened since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from dialogs.api.canonical import ClientRequest
from dialogs.api.reads.clients import KnownPrefix, longest_known
from dialogs.api.writes import client_turns
from dialogs.api.writes.client_turns import HistoryLookup, Intake, Target, take_up
from dialogs.models import LLM, Agent, ApiKey, Course, Dialog
from dialogs.transcript.reads.path import course_branch
from tests.client_dialogs import answered, ask, assistant, request_of, result, user

HISTORY = (
    user("Hello"),
    assistant("Hi."),
    user("Rain?"),
    assistant(None, ("c1", "weather")),
    result("c1", "rain"),
    user("And?"),
)


@pytest.fixture
def key(key: tuple[ApiKey, str]) -> ApiKey:
    return key[0]


@pytest.fixture
def dialog(key: ApiKey, agent: Agent, llm: LLM) -> Dialog:
    """Of the first message, answered."""
    dialog = ask(key, llm, *HISTORY[:1], agent=agent)
    answered(dialog)
    return dialog


@pytest.fixture
def request_(key: ApiKey, agent: Agent, llm: LLM) -> ClientRequest:
    return request_of(key, llm, *HISTORY, agent=agent)


@pytest.fixture
def take(key: ApiKey, agent: Agent, llm: LLM, request_: ClientRequest) -> Callable[[HistoryLookup | None], Intake]:
    return lambda lookup: take_up(key=key, target=Target(agent, llm), request=request_, lookup=lookup)


def look(key: ApiKey, request: ClientRequest) -> HistoryLookup:
    known = longest_known(owner=key.owner, request=request)
    return HistoryLookup(known, course_branch(known.messages[0]))


def test_the_branch_of_what_was_seen_is_what_is_stored(
    key: ApiKey, dialog: Dialog, request_: ClientRequest, take: Callable[[HistoryLookup | None], Intake]
) -> None:
    taken = take(look(key, request_))

    stored = course_branch(taken.leaf)
    assert taken.dialog.pk == dialog.pk
    assert taken.branch is not None
    assert [(one.pk, one.seq, one.role, one.content, one.parts, one.parent_id) for one in taken.branch] == [
        (one.pk, one.seq, one.role, one.content, one.parts, one.parent_id) for one in stored
    ]
    assert len(stored) == len(HISTORY)
    assert taken.is_unchanged


def test_of_a_new_conversation_nothing_need_be_read(
    key: ApiKey, request_: ClientRequest, take: Callable[[HistoryLookup | None], Intake]
) -> None:
    taken = take(HistoryLookup(longest_known(owner=key.owner, request=request_)))

    assert [one.content for one in taken.branch or ()] == [one.content for one in course_branch(taken.leaf)]
    assert taken.is_unchanged


def thrown_away(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(trashed_at=timezone.now(), version=F("version") + 1)


def being_answered(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(wake_seq=F("wake_seq") + 1)


@pytest.mark.parametrize("happened", [thrown_away, being_answered])
def test_what_has_changed_since_is_looked_up_again(
    key: ApiKey,
    dialog: Dialog,
    request_: ClientRequest,
    take: Callable[[HistoryLookup | None], Intake],
    happened: Callable[[Dialog], None],
) -> None:
    lookup = look(key, request_)

    happened(dialog)
    taken = take(lookup)

    assert taken.dialog.pk != dialog.pk
    assert not taken.is_unchanged
    assert [one.content for one in course_branch(taken.leaf)][-1] == "And?"


def let_be(dialog: Dialog) -> None:
    """As a person's undoing does it."""
    Course.objects.filter(dialog=dialog).update(guard_held=True)
    Dialog.objects.filter(pk=dialog.pk).update(version=F("version") + 1)


@pytest.mark.parametrize(("happened", "is_gone_on_with"), [(let_be, True), (thrown_away, False)])
def test_what_happens_between_the_look_and_the_lock_counts_too(
    dialog: Dialog,
    take: Callable[[HistoryLookup | None], Intake],
    monkeypatch: pytest.MonkeyPatch,
    happened: Callable[[Dialog], None],
    is_gone_on_with: bool,
) -> None:
    """PostgreSQL lets others write until the row is locked."""

    def looked(**asked: Any) -> KnownPrefix:
        known = longest_known(**asked)
        happened(dialog)
        return known

    monkeypatch.setattr(client_turns, "longest_known", looked)

    taken = take(None)

    assert (taken.dialog.pk == dialog.pk) is is_gone_on_with
    assert not Course.objects.get(dialog=taken.dialog).guard_held


def test_a_dialog_that_another_request_took_up_meanwhile_is_not_taken_twice(
    key: ApiKey, dialog: Dialog, request_: ClientRequest, take: Callable[[HistoryLookup | None], Intake]
) -> None:
    lookup = look(key, request_)

    first, second = take(lookup), take(lookup)

    assert first.dialog.pk == dialog.pk
    assert second.dialog.pk != dialog.pk
    assert not second.is_unchanged
