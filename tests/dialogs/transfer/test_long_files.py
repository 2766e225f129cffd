"""A long file is read in many short transactions, as nobody else can write to SQLite while one lasts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from dialogs.common.errors import DialogError
from dialogs.models import Blob, Dialog, Message
from dialogs.pages.writes import restore_dialog, trash_dialog
from dialogs.transcript.reads.dialogs import list_dialogs
from dialogs.transcript.writes.dialog_row import erase_dialog
from dialogs.transfer import export_json, import_dialog, importing, references
from tests.dialogs.transfer.conftest import Writer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long_file(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Of 45 messages, five of which are written at a time."""
    monkeypatch.setattr(references, "BATCH", 5)
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


def test_others_can_write_between_its_parts_and_until_it_is_whole_it_lies_in_the_trash(
    bob: User, long_file: dict[str, Any]
) -> None:
    before, seen = Message.objects.count(), list[tuple[int, int]]()

    with at_each_commit(lambda: seen.append((Message.objects.count() - before, list_dialogs(user=bob).count()))):
        imported = import_dialog(owner=bob, data=long_file)

    assert seen == [(written, 0) for written in (5, 10, 15, 20, 25, 30, 35, 40, 45)]
    assert list_dialogs(user=bob).count() == 1
    assert [message.content for message in imported.messages.order_by("seq")] == [f"Message {n}" for n in range(45)]
    assert imported.messages.get(seq=6).parent == imported.messages.get(seq=5)


def test_as_long_as_it_is_not_whole_nobody_takes_it_out_of_the_trash(
    bob: User, long_file: dict[str, Any], as_bob: Client
) -> None:
    said: list[str] = []

    def take_it_out() -> None:
        half = Dialog.objects.get(owner=bob)
        with pytest.raises(DialogError):
            restore_dialog(dialog=half)
        answer = as_bob.post(reverse("dialog_restore", args=[half.pk]), follow=True)
        said.extend(str(one) for one in answer.context["messages"])

    with at_each_commit(take_it_out):
        imported = import_dialog(owner=bob, data=long_file)

    assert len(said) == 9
    assert "still being imported, or its import was broken off" in said[0]
    assert trash_dialog(dialog=imported).trashed_at is not None
    assert restore_dialog(dialog=imported).trashed_at is None


def test_what_a_killed_import_left_is_never_taken_out(bob: User, long_file: dict[str, Any]) -> None:
    left: list[Dialog] = []

    with at_each_commit(lambda: left.append(Dialog.objects.get(owner=bob))):
        import_dialog(owner=bob, data=long_file)

    Dialog.objects.filter(owner=bob).delete()
    left[0].save(force_insert=True)
    with pytest.raises(DialogError, match="Import the file again"):
        restore_dialog(dialog=left[0])
    erase_dialog(dialog=left[0])
    assert not Dialog.objects.filter(owner=bob).exists()


def test_one_without_a_message_may_lie_in_the_trash_and_come_back(bob: User, dialog: Dialog) -> None:
    imported = import_dialog(owner=bob, data=json.loads(json.dumps(export_json(dialog))))

    assert restore_dialog(dialog=trash_dialog(dialog=imported)).trashed_at is None


def test_of_a_file_that_shows_no_message_the_newest_is_shown(bob: User, long_file: dict[str, Any]) -> None:
    imported = import_dialog(owner=bob, data=long_file | {"current_leaf": None})

    assert imported.current_leaf == imported.messages.get(seq=45)


def test_who_erases_it_meanwhile_is_told_so(bob: User, long_file: dict[str, Any]) -> None:
    def erase() -> None:
        for half in Dialog.objects.filter(owner=bob):
            erase_dialog(dialog=half)

    with at_each_commit(erase), pytest.raises(DialogError, match="erased while it was being imported"):
        import_dialog(owner=bob, data=long_file)

    assert not Dialog.objects.filter(owner=bob).exists()


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
