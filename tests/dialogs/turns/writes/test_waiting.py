"""Who waits for whom on PostgreSQL, while a transaction is open. On SQLite each waits for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from dialogs.api.canonical import ClientMessage, ClientRequest
from dialogs.api.writes.client_turns import _one_at_a_time
from dialogs.models import Blob
from dialogs.transcript.writes.dialog_row import _drop_unused
from tests.builders import keep_blob

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="of PostgreSQL's locks"),
]
ALICE, BOB = 1, 2
PATIENCE = "SET LOCAL lock_timeout = '200ms'"


def beside(work: Callable[[], Any]) -> None:
    """Do this in another transaction, which does not wait for long."""

    def done() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(PATIENCE)
                work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(done).result()


def asked(*prefixes: str, chat: str = "") -> ClientRequest:
    said = (ClientMessage(role="user", text="Hello", prefix=one * 64) for one in prefixes)
    return ClientRequest(model="m", messages=tuple(said), chat=chat)


def test_calls_of_an_agent_share_its_instructions() -> None:
    with transaction.atomic():
        keep_blob("You help.")

    with transaction.atomic():
        keep_blob("You help.")
        beside(lambda: keep_blob("You help."))


def test_what_a_call_is_about_to_use_is_not_dropped() -> None:
    with transaction.atomic():
        kept = keep_blob("You help.")

    with transaction.atomic():
        keep_blob("You help.")
        with pytest.raises(OperationalError, match="lock timeout"):
            beside(lambda: _drop_unused({kept}))

    assert Blob.objects.filter(pk=kept).exists()


@pytest.mark.parametrize("other", [asked("a", "b"), asked("a", "c")])
def test_requests_whose_histories_begin_alike_wait_for_each_other(other: ClientRequest) -> None:
    with transaction.atomic():
        _one_at_a_time(ALICE, asked("a", "b"))
        with pytest.raises(OperationalError, match="lock timeout"):
            beside(lambda: _one_at_a_time(ALICE, other))


def test_requests_of_one_chat_wait_for_each_other_however_they_begin() -> None:
    with transaction.atomic():
        _one_at_a_time(ALICE, asked("a", "b", chat="tea"))
        with pytest.raises(OperationalError, match="lock timeout"):
            beside(lambda: _one_at_a_time(ALICE, asked("c", chat="tea")))


@pytest.mark.parametrize(
    ("owner", "other"),
    [(ALICE, asked("c", "d")), (ALICE, asked("a")), (ALICE, asked("a", "b", chat="tea")), (BOB, asked("a", "b"))],
)
def test_requests_of_other_conversations_do_not_wait(owner: int, other: ClientRequest) -> None:
    with transaction.atomic():
        _one_at_a_time(ALICE, asked("a", "b"))
        beside(lambda: _one_at_a_time(owner, other))
