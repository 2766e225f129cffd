"""A worker may die by `kill -9` between any two database steps: nothing is lost, doubled or counted twice.

One story is told again and again, each time by a worker that is killed at another step and by one that goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.models import LLM, Agent, Dialog, Generation, ToolCall
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.tool_calls import INTERRUPTED
from tests.dialogs.driver.conftest import Play, a_call, calling, said
from tests.dialogs.driver.killed_worker import Kill, Moment, work

pytestmark = pytest.mark.django_db(transaction=True)

# The prompt decides the answer: a request that is made again after a death is answered as it was before.
SCRIPT: list[dict[str, Any]] = [
    {"match": "4 more times", **calling(190_000, "add_reminder", '{"content": "Port 8080"}')},
    {
        "match": "3 more times",
        **said(190_000, "", tool_calls=[a_call("send_letter"), a_call("look_outside", call_id="c2")]),
    },
    {"match": "Course 2 begins", **said(50_000, "Well again.")},
    said(190_000, "Nearly full."),
]
GENERATIONS = 7
# A call that may not be repeated: how it ended, and how often it was really made.
LETTERS = {("done", 1), ("interrupted", 0), ("interrupted", 1)}


@pytest.fixture(autouse=True)
def _critical_from_the_first_answer(llm: LLM, play: Play) -> None:
    llm.context_length, llm.optimal_max_tokens = 200_000, None
    llm.save()
    play(*SCRIPT)


class Telling:
    """The story with one dialog: how far it has come, and what the outside tools really did."""

    def __init__(self, alice: User, agent: Agent, folder: Path) -> None:
        self.dialog = create_dialog(owner=alice, agent=agent)
        self.deaths: list[Kill] = []
        self.traces = folder / f"{self.dialog.pk}.txt"
        start_run(dialog=self.dialog, goal="Ship it", max_generations=GENERATIONS)

    def go_on(self, kill: Kill | None = None) -> bool:
        """Let a worker drive until the dialog rests. False when it was killed before."""
        # What the sweeper would wait for: the dead worker's lease to run out.
        Dialog.objects.filter(pk=self.dialog.pk).update(lease_until=None)
        survived = work(self.dialog, traces=self.traces, kill=kill)
        if kill and not survived:
            self.deaths.append(kill)
        return survived

    def really_done(self) -> Counter[str]:
        return Counter(self.traces.read_text().split())

    def outcome(self) -> dict[str, Any]:
        """All that must be the same however often a worker died."""
        self.dialog.refresh_from_db()
        dialog, run = self.dialog, self.dialog.autonomous_runs.get()
        return {
            "dialog": (dialog.answer_due, dialog.is_busy, dialog.paused_by, dialog.last_seq),
            "messages": [
                (row.course.number, row.turn, row.role, row.origin, _as_if_done(row.content))
                for row in dialog.messages.select_related("course").order_by("seq")
            ],
            "courses": list(
                dialog.courses.order_by("number").values_list(
                    "number", "opened_by", "level", "caution_generations", "countdown_turns", "due"
                )
            ),
            "prompts": list(
                dialog.remediation_prompts.order_by("message__seq").values_list("level", "remaining", "curated")
            ),
            "reminders": list(dialog.reminders.order_by("number").values_list("number", "content", "is_continuation")),
            "calls": list(
                ToolCall.objects.filter(message__dialog=dialog).order_by("id").values_list("name", flat=True)
            ),
            "run": (run.generations, run.ended_by),
            "finished": dialog.generations.filter(status=Generation.Status.FINISHED).count(),
        }


def _as_if_done(content: str) -> str:
    return "send_letter: done." if content == INTERRUPTED else content


Tell = Callable[[], Telling]


@pytest.fixture
def tell(alice: User, agent: Agent, tmp_path: Path) -> Tell:
    """Begin the story anew."""
    return lambda: Telling(alice, agent, tmp_path)


@pytest.fixture(scope="module")
def told_once() -> dict[str, Any]:
    return {}


@pytest.fixture
def undisturbed(tell: Tell, told_once: dict[str, Any]) -> dict[str, Any]:
    """The outcome of the story without a death, which each test compares with."""
    if not told_once:
        telling = tell()
        assert telling.go_on()
        told_once.update(telling.outcome())
    return told_once


def assert_nothing_is_lost_or_doubled(telling: Telling, undisturbed: dict[str, Any]) -> None:
    assert telling.outcome() == undisturbed, telling.deaths
    statuses = set(telling.dialog.generations.values_list("status", flat=True))
    assert statuses <= {"finished", "interrupted"}, f"one still runs or was refused: {telling.deaths}"

    letter, look = ToolCall.objects.filter(message__dialog=telling.dialog, name__in=["send_letter", "look_outside"])
    done = telling.really_done()
    assert (letter.status, done["send_letter"]) in LETTERS, telling.deaths
    assert (look.status, done["look_outside"]) in {("done", 1), ("done", 2)}, telling.deaths


def test_the_story_without_a_death(undisturbed: dict[str, Any]) -> None:
    asked = [("critical", 4, True), *(("critical", remaining, False) for remaining in (3, 2, 1, 0))]
    assert undisturbed["prompts"] == asked
    assert [course[:3] for course in undisturbed["courses"]] == [(1, "start", "critical"), (2, "auto", "healthy")]
    assert undisturbed["reminders"] == [(1, "Port 8080", True)]
    assert undisturbed["calls"] == ["add_reminder", "send_letter", "look_outside"]
    assert undisturbed["run"] == (GENERATIONS, "limit")
    assert undisturbed["finished"] == GENERATIONS
    assert undisturbed["dialog"][:3] == (False, False, "limit"), "at rest, as far as the person allowed"


LATER_AND_LATER = range(12, 40)
SOME = [17, *(pytest.param(number, marks=pytest.mark.long) for number in LATER_AND_LATER)]


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("number", SOME)
def test_every_worker_may_be_killed_on_the_way(
    moment: Moment, number: int, tell: Tell, undisturbed: dict[str, Any]
) -> None:
    telling = tell()

    while not telling.go_on(Kill(moment, number)):
        assert len(telling.deaths) < 40, "the workers get nowhere"

    assert len(telling.deaths) >= 2
    assert_nothing_is_lost_or_doubled(telling, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("moment", Moment)
def test_one_worker_may_be_killed_at_any(moment: Moment, tell: Tell, undisturbed: dict[str, Any]) -> None:
    for number in count(1):
        telling = tell()
        if telling.go_on(Kill(moment, number)):
            break
        assert telling.go_on()
        assert_nothing_is_lost_or_doubled(telling, undisturbed)

    assert number > 90, "the story has more such moments than that"
