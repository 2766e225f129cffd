"""An LLM that an admin has switched off answers nobody: neither a dialog begun before, nor one from a file."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from dialogs.models import LLM, Dialog, Generation, Provider
from tests.dialogs.driver.conftest import USAGE, Play, ask_and_drive

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("row", [LLM, Provider])
def test_a_dialog_that_was_begun_before_gets_no_answer(dialog: Dialog, play: Play, row: type[LLM | Provider]) -> None:
    requests = play({"text": "Hi.", "usage": USAGE})
    row.objects.update(enabled=False)
    ask_and_drive(dialog)

    generation = Generation.objects.get()
    assert (generation.status, generation.error_code) == ("failed", "switched_off")
    assert requests() == []


def test_the_page_says_so_and_quotes_nobody_as_nobody_was_asked(dialog: Dialog, play: Play, client: Client) -> None:
    play({"text": "Hi.", "usage": USAGE})
    LLM.objects.update(enabled=False)
    ask_and_drive(dialog)
    client.force_login(dialog.owner)

    page = client.get(f"/dialogs/{dialog.pk}/").content.decode()

    assert "an admin has switched this LLM off" in page
    assert "What the provider said" not in page


def test_it_answers_again_once_it_is_switched_on(dialog: Dialog, play: Play) -> None:
    play({"text": "Hi.", "usage": USAGE})
    LLM.objects.update(enabled=False)
    ask_and_drive(dialog)

    LLM.objects.update(enabled=True)
    ask_and_drive(dialog, "Again")

    assert Generation.objects.order_by("pk").last().status == "finished"  # type: ignore[union-attr]


def test_an_imported_dialog_gets_no_answer_either(
    dialog: Dialog, play: Play, bob: User, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = play({"text": "Hi.", "usage": USAGE}, {"text": "Hi again.", "usage": USAGE})
    ask_and_drive(dialog)
    path = f"{tmp_path}/dialog.json"
    call_command("dialog", "export", str(dialog.pk), "--output", path, stdout=StringIO())
    Provider.objects.update(enabled=False)

    call_command("dialog", "import", path, "--owner", "bob", stdout=StringIO())
    theirs = Dialog.objects.get(owner=bob)
    ask_and_drive(theirs, "Go on")

    assert Generation.objects.filter(dialog=theirs).order_by("pk").last().error_code == "switched_off"  # type: ignore[union-attr]
    assert len(requests()) == 1
