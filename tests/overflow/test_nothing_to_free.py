"""What must stay takes nearly all of the room: compaction is no help, and is not tried again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import openai
import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.messages import retry
from health.models import CompactionRun
from tests.dialogs.driver.conftest import ask, ask_and_drive, drive_until_idle
from tests.dialogs.pages.views.pages import page
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS
from tests.overflow.talk import prose
from tests.standins.compatible import CHARS_PER_TOKEN
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

WINDOW = 8_192
# Of the room, as the instructions take it.
INSTRUCTIONS = prose(1, int(0.87 * 0.9 * WINDOW * CHARS_PER_TOKEN))
TURNS = 8


def assert_said_once(client: Client, alice: User) -> None:
    """One line between the messages, with what takes the room and what to do about it."""
    client.force_login(alice)
    shown = page(client, f"/dialogs/{Dialog.objects.get().pk}/")
    assert [run.status for run in CompactionRun.objects.all()] == ["skipped"]
    assert [attrs.get("aria-label") for _tag, attrs in shown.tags].count("Compaction cannot free more") == 1
    assert re.search(
        r"What must stay needs ≈[\d,]+ tokens, the limit is [\d,]+\. The largest: system prompt \(system\) ≈[\d,]+ "
        r"tokens.*\. To go on, shorten the system prompt",
        shown.text,
    )


def test_a_client_is_answered_and_one_line_says_so(build: Build, client: Client, alice: User) -> None:
    home = build(window=WINDOW, **WAYS["lists it"])
    caller = home.caller(system=INSTRUCTIONS)

    answers = [caller.say(f"Ship {number}: which berth?") for number in range(TURNS)]

    assert all(answers)
    assert len(home.standin.seen) == TURNS, "no model is asked for anything else"
    assert_said_once(client, alice)


@pytest.fixture
def studio(transactional_db: None, agent: Agent) -> Iterator[LMStudioStandin]:
    """Behind Alice's agent, with instructions that take nearly all of the loaded window."""
    standin = LMStudioStandin(context=WINDOW, answer="At the north pier.")
    with serving(standin.app()) as url:
        Provider.objects.update(kind="lmstudio", base_url=url)
        LLM.objects.update(model_id=standin.model, context_length=None, optimal_max_tokens=None, compaction="automatic")
        Agent.objects.update(instructions=INSTRUCTIONS)
        yield standin


def test_no_pruning_agent_is_asked(studio: LMStudioStandin, client: Client, alice: User) -> None:
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())

    for number in range(TURNS):
        ask(dialog, f"Ship {number}: which berth?")
        dialog = drive_until_idle(dialog)

    assert len(studio.sizes) == TURNS
    assert_said_once(client, alice)


def test_a_message_that_is_too_long_alone_offers_no_compaction_that_cannot_help(
    build: Build, client: Client, alice: User
) -> None:
    home = build(window=WINDOW, **WAYS["lists it"])
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())
    ask_and_drive(dialog, prose(1, int(1.6 * WINDOW * CHARS_PER_TOKEN)))
    client.force_login(alice)

    shown = page(client, f"/dialogs/{dialog.pk}/").text
    client.post(f"/dialogs/{dialog.pk}/report/")

    assert re.search(r"The largest: user's words \(\d+\) ≈[\d,]+ tokens.*To go on, shorten a long message", shown)
    assert "Report & Continue" not in shown
    assert not CompactionRun.objects.exists()
    assert home.standin.seen == []


def test_what_was_refused_without_a_number_keeps_no_smaller_message_from_being_tried(build: Build) -> None:
    """Whatever was guessed from it of the window."""
    home = build(window=WINDOW, **WAYS["names nothing"])
    with pytest.raises(openai.APIError):
        home.caller().say(prose(1, int(1.02 * WINDOW * CHARS_PER_TOKEN)))

    assert home.caller().say(prose(2, int(0.7 * WINDOW * CHARS_PER_TOKEN)))
    assert len(home.standin.refusals) == 1


@pytest.mark.parametrize("size", [1.02, 1.6, 5])
def test_a_first_message_that_is_too_long_alone_costs_one_refusal_and_no_run(
    build: Build, client: Client, alice: User, size: float
) -> None:
    """Also where the server names no number, so that its window can only be guessed."""
    home = build(window=WINDOW, **WAYS["names nothing"])
    dialog = create_dialog(owner=alice, agent=Agent.objects.get(llm__provider__name="house", is_direct=False))

    ask_and_drive(dialog, prose(1, int(size * WINDOW * CHARS_PER_TOKEN)))

    assert len(home.standin.seen) == len(home.standin.refusals) == 1
    assert not CompactionRun.objects.exists()
    client.force_login(alice)
    shown = page(client, f"/dialogs/{dialog.pk}/").text
    assert len(re.findall(r"What you said last takes ≈[\d,]+ of them: shorten it, or say it in several\.", shown)) == 1


def test_a_clients_first_message_that_is_too_long_alone_costs_one_refusal_and_no_run(build: Build) -> None:
    home = build(window=WINDOW, **WAYS["names nothing"])

    # By its status, or on a busy machine, where a second has gone by, in the stream.
    with pytest.raises(openai.APIError) as refused:
        home.caller().say(prose(1, int(1.6 * WINDOW * CHARS_PER_TOKEN)))

    assert re.search(r"The request needs ≈[\d,]+ tokens.*What you said last takes ≈[\d,]+ of them", str(refused.value))
    assert len(home.standin.seen) == len(home.standin.refusals) == 1
    assert not CompactionRun.objects.exists()


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("names nothing", r"≈[\d,]+ \(guessed from what the server refused\)"),
        ("names it in a refusal", r"[\d,]+ \(learned from what the server read and refused\)"),
    ],
)
def test_a_limit_that_nobody_wrote_down_is_called_what_it_is(
    build: Build, client: Client, alice: User, way: str, words: str
) -> None:
    """When it is tried again: no window is known for sure, and none is claimed."""
    build(window=WINDOW, **WAYS[way])
    dialog = create_dialog(owner=alice, agent=Agent.objects.get(llm__provider__name="house", is_direct=False))
    ask_and_drive(dialog, prose(1, int(1.6 * WINDOW * CHARS_PER_TOKEN)))

    retry(dialog=dialog)
    drive_until_idle(dialog)

    client.force_login(alice)
    shown = page(client, f"/dialogs/{dialog.pk}/").text
    assert re.search(rf"the limit is {words}\. The largest: user's words", " ".join(shown.split())), shown
