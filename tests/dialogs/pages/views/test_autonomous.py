"""The bar above the composer: the agent on its own, how far it is, how it ended, and why a dialog rests."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.context.chart import chart
from dialogs.models import AutonomousRun, Dialog, Question, ToolCall
from dialogs.pages.live_view import render
from dialogs.pages.reads.page import dialog_parts
from dialogs.templatetags.dialog_tags import lasting
from dialogs.turns.writes.autonomous import end_run, finish_run, start_run
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer
from tests.dialogs.pages.views.pages import Page

BAR = re.compile(r'<section id="autonomous".*?</section>', re.DOTALL)


def bar(client: Client, dialog: Dialog) -> Page:
    """The bar above the composer, as the page brings it."""
    found = BAR.search(client.get(f"/dialogs/{dialog.pk}/").content.decode())
    assert found is not None
    return Page(found[0])


def words(shown: Page) -> str:
    return " ".join(shown.text.split())


def running(dialog: Dialog) -> None:
    start_run(dialog=dialog, goal="Tidy the archive", max_generations=300)


def test_without_a_run_the_bar_is_hidden(as_alice: Client, dialog: Dialog) -> None:
    _tag, attrs = bar(as_alice, dialog).tags[0]

    assert "hidden" in attrs


def test_the_bar_says_how_far_the_agent_is(as_alice: Client, dialog: Dialog) -> None:
    running(dialog)
    AutonomousRun.objects.update(generations=12)
    dialog.courses.create(number=2)

    shown = bar(as_alice, dialog)

    assert "generation 12 of 300" in words(shown)
    assert "course 2" in words(shown)
    assert "keeps going on its own" in words(shown)
    assert words(shown).endswith("Pause End")
    progress = next(attrs for tag, attrs in shown.tags if tag == "progress")
    assert (progress["max"], progress["value"]) == ("300", "12")
    assert any("data-since" in attrs for _tag, attrs in shown.tags)


def test_the_whole_goal_is_there_to_read_and_survives_a_push(as_alice: Client, dialog: Dialog) -> None:
    start_run(dialog=dialog, goal="word " * 200 + "end", max_generations=1)

    shown = bar(as_alice, dialog)

    assert words(shown).count("word end") == 1
    details = next(attrs for tag, attrs in shown.tags if tag == "details")
    assert "hx-preserve" in details
    assert details["id"]


@pytest.mark.parametrize(
    ("paused_by", "reason"),
    [
        ("person", "by you"),
        ("failure", "failed"),
        ("rounds", "too many times"),
        ("full", "Shorten them"),
        ("loop", "round in circles"),
        ("owner", "switched off"),
    ],
)
def test_the_bar_says_why_the_dialog_rests(as_alice: Client, dialog: Dialog, paused_by: str, reason: str) -> None:
    running(dialog)
    Dialog.objects.update(paused_by=paused_by)

    shown = words(bar(as_alice, dialog))

    assert re.search(f"Paused.*{reason}", shown)
    assert shown.endswith("Go on End")


def test_after_the_limit_the_bar_says_that_something_is_due_and_not_that_a_person_paused(
    as_alice: Client, dialog: Dialog
) -> None:
    post_message(dialog=dialog, content="Hello")
    Dialog.objects.update(paused_by="limit")
    dialog.courses.update(due="caution")

    shown = bar(as_alice, dialog)

    assert words(shown) == "What is due in this dialog waits for you. Go on"
    assert "hidden" not in shown.tags[0][1]


def test_the_bar_says_that_the_agent_waits_for_an_answer(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    call = ToolCall.objects.create(message=an_answer(dialog), position=0, call_id="1", name="ask_human")
    Question.objects.create(dialog=dialog, tool_call=call, text="Which box?")
    running(dialog)

    assert "waits for your answer" in words(bar(as_alice, dialog))


def test_the_bar_says_how_the_run_ended_and_offers_another(as_alice: Client, dialog: Dialog) -> None:
    running(dialog)
    finish_run(Dialog.objects.get(), summary="All boxes are **labelled**. <script>alert(1)</script>")

    shown = bar(as_alice, dialog)

    assert "the agent says that it is done" in words(shown)
    assert "All boxes are labelled." in words(shown)
    assert words(shown).endswith("Start another…")
    assert shown.offences == []
    assert "progress" not in [tag for tag, _attrs in shown.tags]


@pytest.mark.parametrize(("ended_by", "reason"), [("limit", "all generations"), ("person", "by you")])
def test_the_other_ends_have_their_words(as_alice: Client, dialog: Dialog, ended_by: str, reason: str) -> None:
    running(dialog)
    AutonomousRun.objects.update(ended_at=timezone.now(), ended_by=ended_by)

    assert re.search(f"Ended.*{reason}", words(bar(as_alice, dialog)))


def test_the_socket_brings_the_bar(dialog: Dialog) -> None:
    running(dialog)
    end_run(dialog=dialog)
    parts = dialog_parts(Dialog.objects.get())

    pushed = "".join(render(parts | {"chart": chart(parts["history"])}).parts)

    assert "Ended by you." in pushed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (45, "45 s"),
        (260, "4 min 20 s"),
        (7_200, "2 h 0 min"),
        (86_399, "23 h 59 min"),
        (3 * 86_400 + 5 * 3600 + 59, "3 d 5 h"),
    ],
)
def test_how_long_it_took_is_said_in_two_units(seconds: int, text: str) -> None:
    assert lasting(seconds) == text
