"""A text larger than the window is pasted: both sizes are told, it can be shortened, and every other way goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.compaction.work import perform
from dialogs.driver.writes.courses import start_course
from dialogs.models import LLM, Agent, Dialog
from dialogs.models.message import MessageOrigin
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.messages import retry
from health.models import CompactionRun
from tests.dialogs.driver.conftest import ask_and_drive, drive_until_idle
from tests.dialogs.pages.views.pages import Page, page
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS
from tests.overflow.talk import prose
from tests.standins.compatible import CHARS_PER_TOKEN

WINDOW = 8_192
# Of the window, as the server counts: far above it, and hardly, which our estimate may take for less.
FAR, HARDLY = 1.6, 1.0
LISTED, NAMED, UNNAMED = "lists it", "names it in a refusal", "names nothing"
EVERY_CASE = list(product((LISTED, NAMED, UNNAMED), (FAR, HARDLY)))
SOME_CASES = {(LISTED, FAR), (LISTED, HARDLY), (NAMED, HARDLY), (UNNAMED, FAR)}
each = pytest.mark.parametrize(
    ("way", "size"),
    [pytest.param(*one, marks=() if one in SOME_CASES else (pytest.mark.long,)) for one in EVERY_CASE],
)


@pytest.fixture
def pasted(build: Build, alice: User, way: str) -> Callable[[float], Dialog]:
    """Alice has said something short, and then pasted a text of so many windows."""
    build(window=WINDOW, **WAYS[way])

    def paste(size: float) -> Dialog:
        dialog = create_dialog(owner=alice, agent=Agent.objects.get(llm__provider__name="house", is_direct=False))
        for words in ("Hello there.", prose(1, int(size * WINDOW * CHARS_PER_TOKEN))):
            ask_and_drive(dialog, words)
        return dialog

    return paste


def is_answered(dialog: Dialog, words: str) -> bool:
    ask_and_drive(dialog, words)
    return dialog.paused_by == "" and dialog.messages.latest("seq").role == "assistant"


@each
def test_it_is_refused_with_both_sizes_and_can_be_shortened_where_it_was_refused(
    pasted: Callable[[float], Dialog], client: Client, alice: User, size: float
) -> None:
    dialog = pasted(size)
    client.force_login(alice)

    html = client.get(f"/dialogs/{dialog.pk}/").content.decode()
    shown = Page(html)

    assert dialog.courses.count() == 1, "a new course would hold the same text"
    assert re.search(r"≈[\d,]+ tokens.* ([\d,]+|≈[\d,]+ of them)\.?", shown.text)
    assert "Shorten your message and send it again" in shown.text
    assert "Report & Continue" not in shown.text
    leaf = dialog.current_leaf
    assert leaf is not None
    assert leaf.origin == MessageOrigin.TYPED
    there = f"/dialogs/{dialog.pk}/messages/{leaf.pk}/edit/"
    assert f"{there}form/" in shown.links()
    [told] = re.findall(r'<div class="attempt-told" role="alert">.*?</div>', html, flags=re.DOTALL)
    assert "tokens" in told, "what a screen reader announces says why"
    assert there not in told, "and does not read out the whole text once more"
    assert leaf.content in page(client, f"{there}form/").text, "the text is there, to be shortened"

    client.post(there, {"content": "Summarise what harbours do."})
    drive_until_idle(dialog)

    assert dialog.paused_by == ""
    assert dialog.messages.latest("seq").role == "assistant"


@pytest.mark.parametrize("way", [LISTED, NAMED, UNNAMED])
def test_with_compaction_off_what_is_typed_after_it_is_answered_by_the_one_button_that_is_offered(
    pasted: Callable[[float], Dialog], client: Client, alice: User
) -> None:
    LLM.objects.update(compaction="off")
    dialog = pasted(FAR)
    client.force_login(alice)
    assert not is_answered(dialog, "Never mind."), "the text before it is sent again"
    assert "Compact and ask again" in page(client, f"/dialogs/{dialog.pk}/").text

    client.post(f"/dialogs/{dialog.pk}/report/")
    perform(CompactionRun.objects.get().pk, embedder="static")
    drive_until_idle(dialog)

    assert dialog.paused_by == ""
    assert dialog.messages.latest("seq").role == "assistant"


@each
@pytest.mark.parametrize("empty", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_new_course_goes_on(pasted: Callable[[float], Dialog], size: float, empty: bool) -> None:
    dialog = pasted(size)

    start_course(dialog=dialog, empty=empty)
    dialog.refresh_from_db()

    assert is_answered(dialog, "Never mind.")
    assert is_answered(dialog, "Are you still there?")


@each
def test_another_message_goes_on_though_trying_again_does_not_help(
    pasted: Callable[[float], Dialog], size: float
) -> None:
    dialog = pasted(size)
    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert is_answered(dialog, "Never mind.")
    assert is_answered(dialog, "Are you still there?")
    assert dialog.courses.count() == 1
