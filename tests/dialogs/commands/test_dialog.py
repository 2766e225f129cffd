"""`manage.py dialog`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import resource
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from dialogs.models import Dialog, Message


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("dialog", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def greeted(dialog: Dialog) -> Dialog:
    dialog.current_leaf = Message.objects.create(
        dialog=dialog, course=dialog.courses.get(), seq=1, turn=1, role="user", origin="typed", content="Hello"
    )
    dialog.save()
    return dialog


def test_a_dialog_is_exported_and_imported_for_another_person(greeted: Dialog, bob: User, tmp_path: Path) -> None:
    file = tmp_path / "hello.json"
    run("export", str(greeted.pk), "--output", str(file))

    said = run("import", str(file), "--owner", "bob")

    imported = bob.dialogs.get()
    assert imported.messages.get().content == "Hello"
    assert str(imported.pk) in said


def test_export_prints_json_or_markdown(greeted: Dialog) -> None:
    assert json.loads(run("export", str(greeted.pk)))["format"] == "dominds.dialog/8"
    assert "Hello" in run("export", str(greeted.pk), "--markdown")


def test_a_file_that_exists_is_not_overwritten(greeted: Dialog, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text("mine")

    with pytest.raises(CommandError, match="exists"):
        run("export", str(greeted.pk), "--output", str(file))

    assert file.read_text() == "mine"


def test_of_an_export_that_the_disk_has_no_room_for_nothing_stays(greeted: Dialog, tmp_path: Path) -> None:
    file = tmp_path / "hello.json"
    Message.objects.update(content="long " * 100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(CommandError):
            run("export", str(greeted.pk), "--output", str(file))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("export", "not-an-id"), "There is no dialog not-an-id"),
        (("import", "/does/not/exist", "--owner", "alice"), "No such file"),
        (("import", "/dev/null", "--owner", "nobody"), "There is no user “nobody”"),
        (("import", "/dev/null", "--owner", "alice", "--agent", "x"), "There is no agent “x”"),
        (("import", "/dev/null", "--owner", "alice"), "not JSON"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], complaint: str, alice: User) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)


def test_emptying_the_trash_says_how_many_went(dialog: Dialog) -> None:
    dialog.trashed_at = timezone.now()
    dialog.save()

    assert run("empty-trash", "--days", "0") == "Erased 1 dialogs.\n"
    assert not Dialog.objects.exists()
