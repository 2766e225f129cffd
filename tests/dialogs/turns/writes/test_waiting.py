"""Who waits for whom on PostgreSQL, while a transaction is open. On SQLite each waits for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from dialogs.api.requests import ClientMessage, ClientRequest
from dialogs.api.writes.client_turns import _one_at_a_time
from dialogs.models import Blob
from dialogs.transcript.writes.dialog_row import _drop_unused
from tests.builders import keep_blob

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="of PostgreSQL's locks"),
]
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


def asked(*prefixes: str) -> ClientRequest:
    said = (ClientMessage(role="user", text="Hello", prefix=one * 64) for one in prefixes)
    return ClientRequest(model="m", messages=tuple(said))


def test_calls_of_an_agent_share_its_instructions() -> None:
    keep_blob("You help.")

    with transaction.atomic():
        keep_blob("You help.")
        beside(lambda: keep_blob("You help."))


def test_what_a_call_is_about_to_use_is_not_dropped() -> None:
    kept = keep_blob("You help.")

    with transaction.atomic():
        keep_blob("You help.")
        with pytest.raises(OperationalError, match="lock timeout"):
            beside(lambda: _drop_unused({kept}))

    assert Blob.objects.filter(pk=kept).exists()


def test_requests_with_one_history_wait_for_each_other() -> None:
    with transaction.atomic():
        _one_at_a_time(asked("a", "b"))
        with pytest.raises(OperationalError, match="lock timeout"):
            beside(lambda: _one_at_a_time(asked("a", "b")))


@pytest.mark.parametrize("other", [asked("c", "d"), asked("a")])
def test_other_requests_of_a_key_do_not_wait(other: ClientRequest) -> None:
    with transaction.atomic():
        _one_at_a_time(asked("a", "b"))
        beside(lambda: _one_at_a_time(other))
