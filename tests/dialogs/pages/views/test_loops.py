"""The notice above the composer that an agent goes round in circles: whose it is, what it says, and the ways out."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from dialogs.models import Dialog
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import post_message
from health.loops import SignKind
from tests.builders import an_answer
from tests.dialogs.pages.views.pages import page

SEEN = [
    {"kind": SignKind.CALLS, "count": 4, "tool": "read_<b>file", "numbers": []},
    {"kind": SignKind.ERRORS, "count": 3, "tool": "write_file", "numbers": []},
    {"kind": SignKind.ANSWERS, "count": 3, "tool": "", "numbers": [92]},
    {"kind": SignKind.SHRINKING, "count": 5, "tool": "", "numbers": [1200, 90]},
]
SAID = (
    "read_<b>file was called 4 times with the same arguments and the same result.",
    "write_file failed 3 times with the same error.",
    "The last 3 answers are 92 % alike.",
    "The last 5 answers became shorter and shorter: from 1,200 characters to 90.",
    "The context was over its limit meanwhile.",
)
WAYS_OUT = ("Start fresh with a handover", "Not now")


def found_in(dialog: Dialog, *, paused: bool = False) -> None:
    dialog.refresh_from_db()
    course = dialog.current_leaf.course_id if dialog.current_leaf else None
    log("LOOP_DETECTED", dialog, seen=SEEN, over_hits=2, through=dialog.last_seq, course=course, paused=paused)


@pytest.fixture
def dialog(dialog: Dialog) -> Dialog:
    """Alice's, at rest, with a circle found in it."""
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    found_in(dialog)
    return dialog


def url(dialog: Dialog) -> str:
    return f"/dialogs/{dialog.pk}/"


def test_it_says_exactly_what_was_seen_and_how_to_get_out(as_alice: Client, dialog: Dialog) -> None:
    shown = page(as_alice, url(dialog))

    for words in (*SAID, *WAYS_OUT):
        assert words in shown.text
    assert any(link.startswith(reverse("compaction_reset", args=[dialog.pk])) for link in shown.links())
    assert shown.offences == []


def test_while_the_agent_answers_it_is_told_but_cannot_begin_afresh(as_alice: Client, dialog: Dialog) -> None:
    Dialog.objects.update(wake_seq=99)

    shown = page(as_alice, url(dialog))

    assert SAID[0] in shown.text
    assert WAYS_OUT[0] not in shown.text


def test_not_now_takes_it_away(as_alice: Client, dialog: Dialog) -> None:
    as_alice.post(reverse("loop_dismiss", args=[dialog.pk]))

    assert SAID[0] not in page(as_alice, url(dialog)).text


def test_a_resting_agent_has_the_reason_beside_its_goal(as_alice: Client, dialog: Dialog) -> None:
    start_run(dialog=dialog, goal="Win", max_generations=9)
    Dialog.objects.update(paused_by="loop", wake_seq=0, handled_seq=0)
    found_in(dialog, paused=True)

    text = page(as_alice, url(dialog)).text

    assert "Paused, because the agent seems to go round in circles." in text
    for words in (SAID[0], *WAYS_OUT, "Go on"):
        assert words in text


def test_the_events_page_gives_the_cause(as_alice: Client, dialog: Dialog) -> None:
    text = page(as_alice, "/events/").text

    assert "LOOP_DETECTED" in text
    assert " ".join(SAID) in text
