"""Whatever begins a course anew, and twice in a row: rule, goal, unanswered words and pins stand in the third's first
request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import reset
from dialogs.driver.writes.courses import return_to_earlier, start_course
from dialogs.models import LLM, Agent, Course, Dialog
from dialogs.models.agent import WhenFull
from dialogs.transcript.writes.marks import set_pin
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import post_message
from tests.dialogs.compacting_builders import guard
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "You must never delete the table of customers."
GOAL = "Ship the catalogue of spring"
PINNED = "The paint is stored in shed seven."
UNANSWERED = ("Build the index of plants.", "WAIT, first count the seedlings!")
TOO_LONG = {"error": {"code": "context_overflow", "message": "too long", "is_of_bytes": True}}
BROKEN = {"error": {"code": "authentication_refused", "message": "no"}}
Steps = Sequence[dict[str, Any]]
Begin = Callable[..., Callable[[], list[dict[str, Any]]]]


def working(tokens: int, number: int = 0) -> dict[str, Any]:
    """A round without a word to the person."""
    return calling(tokens, "update_taskdoc", f'{{"content": "Step {number}"}}', f"w{number}")


def clearing(arguments: str = "{}") -> dict[str, Any]:
    return calling(10, "clear_mind", arguments)


@dataclass(frozen=True)
class Way:
    """The steps of the provider that end a course; or what a person does once the turn has failed."""

    steps: Steps
    opened_by: str
    by_hand: Callable[[Dialog], object] | None = None
    # Of the agent, where it has one.
    limit: int = 0
    # Who began the courses; else the same for both.
    begun_by: tuple[str, ...] = ()


def go_back_and_begin_again(dialog: Dialog) -> None:
    """From the course that has just begun; it stays stored, as another version."""
    start_course(dialog=dialog)
    dialog.refresh_from_db()
    assert dialog.current_leaf is not None
    return_to_earlier(dialog=dialog, number=dialog.current_leaf.course.number)
    start_course(dialog=dialog)


WAYS = {
    "by hand": Way([BROKEN, BROKEN], "user", lambda dialog: start_course(dialog=dialog)),
    "by hand, after going back": Way([BROKEN, BROKEN], "user", go_back_and_begin_again, begun_by=("user",) * 4),
    "cleared by the agent": Way([working(10), clearing()], "agent"),
    "cleared with a reminder": Way([working(10), clearing('{"reminder_content": "Step 3 is next."}')], "agent"),
    "after the countdown": Way([working(19_500, number) for number in range(6)], "auto"),
    "refused as too long": Way([working(700), TOO_LONG], "recovery", limit=3500),
}


@pytest.fixture
def begun(dialog: Dialog, llm: LLM, play: Play) -> Begin:
    """Alice has laid down a rule and pinned a message; both were answered. What she types next is not."""

    def begin(steps: Steps, limit: int = 0) -> Callable[[], list[dict[str, Any]]]:
        llm.context_length = 20_000
        llm.save()
        if limit:
            guard(dialog, limit=limit)
        requests = play(said(10, "Noted."), said(10, "Kept."), *steps)
        ask_and_drive(dialog, RULE)
        set_pin(dialog=dialog, message_id=ask(dialog, PINNED).pk, pinned=True)
        drive_until_idle(dialog)
        start_run(dialog=dialog, goal=GOAL, max_generations=40)
        for words in UNANSWERED:
            post_message(dialog=dialog, content=words)
        return requests

    return begin


# What is done by hand or by the agent is the same however its context is kept from filling.
BOTH = ("after the countdown", "refused as too long")
CASES = [
    pytest.param(
        way, when_full, id=f"{name}-{when_full}", marks=(pytest.mark.long,) if is_same and name not in BOTH else ()
    )
    for when_full, is_same in ((WhenFull.COMPACT, False), (WhenFull.REMIND, True))
    for name, way in WAYS.items()
]


@pytest.mark.parametrize(("way", "when_full"), CASES)
def test_nothing_that_counts_is_lost_to_two_courses_in_a_row(
    dialog: Dialog, begun: Begin, way: Way, when_full: str
) -> None:
    Agent.objects.update(when_full=when_full)
    requests = begun([*way.steps, *way.steps, calling(10, "goal_done", '{"summary": "x"}'), said(10)], way.limit)
    drive_until_idle(dialog)
    if way.by_hand:
        begin_twice_by_hand(dialog, way.by_hand)

    begun_by = list(Course.objects.order_by("number").values_list("opened_by", flat=True))
    assert begun_by == ["start", *(way.begun_by or (way.opened_by,) * 2)]
    first = next(request for request in requests() if f"Course {len(begun_by)} begins" in words_of(request))
    for kept in (RULE, GOAL, PINNED, *UNANSWERED):
        assert kept in words_of(first), kept


def test_nothing_that_counts_is_lost_to_a_reset_of_the_chat_and_another(dialog: Dialog, begun: Begin) -> None:
    requests = begun([BROKEN, said(10, "Going on."), calling(10, "goal_done", '{"summary": "x"}'), said(10)])
    drive_until_idle(dialog)
    for _time in range(2):
        perform(reset(dialog=dialog, by=dialog.owner).pk, embedder="static")
        dialog.refresh_from_db()

    ask_and_drive(dialog, "And now?")

    after = next(request for request in requests() if "And now?" in words_of(request))
    for kept in (RULE, GOAL, PINNED, *UNANSWERED):
        assert kept in words_of(after), kept


def begin_twice_by_hand(dialog: Dialog, begin: Callable[[Dialog], object]) -> None:
    for words in ("And now?", "Still there?"):
        begin(dialog)
        ask_and_drive(dialog, words)


def words_of(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])
