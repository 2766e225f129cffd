"""A long file is read in many short transactions, as nobody else can write to SQLite while one lasts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from dialogs.models import Blob, Dialog, Message
from dialogs.transcript.reads.dialogs import list_dialogs
from dialogs.transfer import adding, export_json, import_dialog, importing
from tests.dialogs.transfer.conftest import Writer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long_file(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Of 45 messages, five of which are written at a time."""
    monkeypatch.setattr(adding, "BATCH", 5)
    writer, parent = Writer(dialog), None
    for number in range(45):
        parent = writer.say(f"Message {number}", parent=parent, role="assistant" if number % 2 else "user")
    dialog.current_leaf, dialog.last_seq = parent, 45
    dialog.save()
    return json.loads(json.dumps(export_json(dialog)))


@contextmanager
def at_each_commit(look: Callable[[], None]) -> Iterator[None]:
    """`look` after each transaction that writes messages."""

    def execute(run: Callable[..., Any], sql: str, *more: Any) -> Any:
        if sql.startswith('INSERT INTO "dialogs_message"'):
            transaction.on_commit(look)
        return run(sql, *more)

    with connection.execute_wrapper(execute):
        yield


def test_others_can_write_between_its_parts(bob: User, long_file: dict[str, Any]) -> None:
    before, written = Message.objects.count(), []

    with at_each_commit(lambda: written.append(Message.objects.count() - before)):
        imported = import_dialog(owner=bob, data=long_file)

    assert written == [5, 10, 15, 20, 25, 30, 35, 40, 45]
    assert [message.content for message in imported.messages.order_by("seq")] == [f"Message {n}" for n in range(45)]
    assert imported.messages.get(seq=6).parent == imported.messages.get(seq=5)


def test_until_it_is_whole_it_lies_in_the_trash(bob: User, long_file: dict[str, Any]) -> None:
    shown: list[int] = []

    with at_each_commit(lambda: shown.append(list_dialogs(user=bob).count())):
        import_dialog(owner=bob, data=long_file)

    assert set(shown) == {0}
    assert list_dialogs(user=bob).count() == 1


def test_of_one_that_cannot_be_written_to_its_end_nothing_is_left(
    bob: User, long_file: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Blob.objects.count(), Message.objects.count()

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(importing, "_add_rest", full)
    with pytest.raises(OSError, match="No space"):
        import_dialog(owner=bob, data=long_file)

    assert not Dialog.objects.filter(owner=bob).exists()
    assert (Blob.objects.count(), Message.objects.count()) == before
