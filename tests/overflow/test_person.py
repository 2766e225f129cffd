"""A person's chat in the browser, through the driver: it grows past its window, and nobody notices.

The server lists its window of 8,192 tokens; nothing is configured.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.models import Agent, Dialog
from dialogs.pages.writes import create_dialog
from dialogs.transcript.reads.path import course_branch
from health.models import CompactionRun
from tests.dialogs.driver.conftest import ask, drive_until_idle
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, House, answer_of, long_answers
from tests.overflow.talk import Talk, missing
from tests.standins.compatible import Lists

WINDOW = 8_192


def chat(home: House, owner: User, talk: Talk) -> Dialog:
    """Every message typed, and its answer waited for."""
    dialog = create_dialog(owner=owner, agent=Agent.objects.get(llm__provider__name="house", is_direct=False))
    for number in range(1, talk.turns + 1):
        ask(dialog, talk.turn(number))
        dialog = drive_until_idle(dialog)
    return dialog


@pytest.mark.parametrize("way", ["lists it", "cuts the oldest"])
def test_a_long_chat_goes_on_in_its_course(build: Build, alice: User, way: str) -> None:
    talk = Talk(WINDOW, turns=30, windows=2.2)
    home = build(window=WINDOW, reply=long_answers(talk.chars), **WAYS[way])

    dialog = chat(home, alice, talk)

    assert (home.standin.invalid, home.standin.refusals) == ([], [])
    assert dialog.courses.count() == 1
    assert missing(home.last, (talk.turn(talk.turns), *talk.promised)) == []
    # An answer to a part of the prompt, which was asked for once more, stays beside the branch.
    answers = [one.content for one in course_branch(dialog.current_leaf) if one.role == "assistant"]
    whole = [answer_of(talk.turn(number), talk.chars) for number in range(1, talk.turns + 1)]
    short = [at for at, (said, due) in enumerate(zip(answers, whole, strict=True), 1) if said != due]
    # Where the window is not known yet, the server may have had no room for all of an answer.
    assert len(short) <= (3 if home.standin.lists == Lists.NOWHERE else 0), short


def test_compactions_of_large_exchanges_leave_more_than_half_of_the_limit(build: Build, alice: User) -> None:
    """Each exchange adds a fifth of the window. Room for many more of them would cost what the model knows."""
    talk = Talk(WINDOW, turns=16, windows=3.2)
    home = build(window=WINDOW, reply=long_answers(talk.chars), **WAYS["lists it"])

    chat(home, alice, talk)

    left = [run.estimated_after / run.limit_tokens for run in CompactionRun.objects.filter(status="applied")]
    assert len(left) <= talk.turns / 2
    assert all(0.55 <= share <= 0.75 for share in left), left
