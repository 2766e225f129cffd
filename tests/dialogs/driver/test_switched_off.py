"""Where compaction is switched off: what a refusal looks like, and how a person compacts and asks again."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from dialogs.compaction.work import perform
from dialogs.models import LLM, Agent, Course, Dialog, Generation, LlmBounds, Provider
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.driver.conftest import USAGE, Play, ask_and_drive, drive_until_idle, said
from tests.dialogs.pages.views.pages import page

pytestmark = pytest.mark.django_db(transaction=True)
REFUSAL = {"error": {"code": "context_overflow"}}


@pytest.fixture
def off(dialog: Dialog) -> Dialog:
    """A long dialog that is not compacted by itself; its window is unknown."""
    LLM.objects.update(compaction="automatic", context_length=None)
    a_history(dialog, pairs=16)
    Dialog.objects.update(compaction="off")
    dialog.refresh_from_db()
    return dialog


def test_the_refusal_is_told_and_no_course_begins(off: Dialog, play: Play) -> None:
    play(REFUSAL)
    ask_and_drive(off)

    assert [one.error_code for one in Generation.objects.order_by("pk")] == ["context_overflow"]
    assert Course.objects.count() == 1
    assert not CompactionRun.objects.exists()


def test_a_person_compacts_and_asks_again(off: Dialog, play: Play, as_alice: Client) -> None:
    requests = play(REFUSAL, said(None, "Here you are."))
    ask_and_drive(off)

    assert "Compact and ask again" in page(as_alice, f"/dialogs/{off.pk}/").text
    as_alice.post(f"/dialogs/{off.pk}/report/")
    perform(CompactionRun.objects.get().pk, embedder="static")
    off.refresh_from_db()
    drive_until_idle(off)

    first, second = requests()
    assert len(str(second)) < len(str(first))
    assert off.current_leaf is not None
    assert off.current_leaf.content == "Here you are."
    assert off.compaction == "off"


def test_what_would_be_cut_without_a_word_is_refused_with_both_sizes(off: Dialog, play: Play, as_alice: Client) -> None:
    requests = play(said(None))
    Provider.objects.update(kind="openai", base_url="http://127.0.0.1:11434/v1")
    LLM.objects.update(context_length=2048)
    ask_and_drive(off)

    assert requests() == []
    refused = page(as_alice, f"/dialogs/{off.pk}/").text
    assert "does not fit the LLM's context window, and compaction is switched off" in refused
    assert "and 1,844 have room" in refused
    assert "Compact and ask again" in refused


def test_a_limit_below_the_window_refuses_nothing_there(off: Dialog, play: Play) -> None:
    """The server would cut nothing of it: only what does not fit its window is refused."""
    requests = play(said(None))
    LlmBounds.objects.create(llm=off.llm, cut_sent=40_000, cut_read=30_000, cut_at=timezone.now())
    Agent.objects.update(context_budget=True, context_limit=3_500)
    ask_and_drive(off)

    assert len(requests()) == 1
    assert not CompactionRun.objects.exists()


# An LLM that an admin has switched off answers nobody: neither a dialog begun before, nor one from a file.


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
