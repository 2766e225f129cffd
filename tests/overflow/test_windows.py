"""No conversation overflows: growing turns at servers that differ in what they say of their window.

The official client, `/v1` over a socket, a server added by `provider add`, and nothing configured.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from dialogs.llms import windows
from dialogs.llms.guard import known_window
from dialogs.models import Dialog
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, House, answer_of, hold, long_answers
from tests.overflow.talk import FEWEST_TURNS, SYSTEM, TURNS, Talk, missing
from tests.standins.compatible import Lists, Overlong

SIZES = (4_096, 8_192, 32_768)
# How many refusals each way may see. A server that cuts refuses nothing.
REFUSALS = {"names it in a refusal": 1, "names nothing": 3}
# The whole matrix takes minutes: one way of cutting, of counting and of listing stands for the other here.
ALWAYS = {
    "lists it": 16_384,
    "names it in a refusal": 8_192,
    "names nothing": 4_096,
    "cuts the oldest": 8_192,
    "leaves cached tokens out": 4_096,
    "counts the answer": 8_192,
}


def matrix() -> Iterator[Any]:
    for way, size in ALWAYS.items():
        yield pytest.param(way, size, FEWEST_TURNS, id=f"{way}, {size}")
    for way, size in itertools.product(WAYS, SIZES):
        yield pytest.param(way, size, TURNS, id=f"{way}, {size}, {TURNS} turns", marks=pytest.mark.long)


@pytest.mark.parametrize(("way", "window", "turns"), list(matrix()))
def test_growing_turns_are_answered(build: Build, way: str, window: int, turns: int) -> None:
    talk = Talk(window, turns=turns)
    home = build(window=window, reply=long_answers(talk.chars), **WAYS[way])
    caller = home.caller(**({"max_tokens": window // 4} if home.standin.counts_answer else {}))
    confirmed: list[int] = []
    unknown_until = [talk.turns + 1]

    def note_cuts(number: int) -> None:
        """How many requests the server had seen when a cut was first known, and before which turn that was."""
        if not confirmed and home.confirmed_cuts():
            confirmed.append(len(home.standin.seen))
            unknown_until[0] = number

    answers = hold(caller, talk, each=note_cuts)

    assert home.standin.invalid == []
    assert len(home.standin.refusals) <= REFUSALS.get(way, 0)
    assert_answered(home, talk, answers, unknown_until[0])
    assert_cuts_end(home, way, confirmed, unknown_until[0])
    assert missing(home.last, (SYSTEM, talk.turn(talk.turns), *talk.promised)) == []


def assert_answered(home: House, talk: Talk, answers: list[str], unknown_until: int) -> None:
    """With the server's words. Only where the window is not known yet may it have had no room for all of them."""
    whole = [answer_of(talk.turn(number), talk.chars) for number in range(1, talk.turns + 1)]
    wrong = [at for at, (got, said) in enumerate(zip(answers, whole, strict=True), 1) if got != said]
    short = [at for at in wrong if answers[at - 1] and whole[at - 1].startswith(answers[at - 1])]
    assert wrong == (short if home.standin.lists == Lists.NOWHERE else [])
    if home.standin.overlong == Overlong.REFUSED:
        assert len(short) <= 3
    else:
        assert [at for at in short if at >= unknown_until] == []


def assert_cuts_end(home: House, way: str, confirmed: list[int], unknown_until: int) -> None:
    """After the cut that showed what this server does there is none; and nobody else is taken for one that cuts."""
    cuts = [at for at, one in enumerate(home.standin.seen, 1) if one in home.standin.cuts]
    if way.startswith("cuts"):
        assert confirmed, f"no cut was confirmed; of {len(home.standin.seen)} requests these were cut: {cuts}"
        assert [at for at in cuts if at > confirmed[0]] == []
        # A client asks again itself, if it wants to.
        assert confirmed[0] == unknown_until - 1
    else:
        assert (cuts, home.confirmed_cuts()) == ([], [])


def test_a_window_that_shrank_and_grew_again_is_used_whole(build: Build) -> None:
    """As a server's that was restarted twice; until now what the refusals taught held for a day."""
    talk = Talk(8_192)
    home = build(window=8_192, lists=Lists.MODELS)
    caller = home.caller()
    caller.say(talk.turn(1))

    home.standin.window = 2_048
    for number in range(2, 12):
        caller.say(talk.turn(number))
    assert home.standin.refusals
    assert room(home) < 2_048

    home.standin.window = 8_192
    call_command("provider", "check", "house")
    assert room(home) > 7_000


def test_a_refusal_does_not_wait_for_a_server_that_is_slow_to_tell_its_window(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PATIENCE_SECONDS", 0.2)
    talk = Talk(8_192)
    home = build(window=8_192, lists=Lists.MODELS)
    caller = home.caller()
    caller.say(talk.turn(1))

    home.standin.window, home.standin.silent_seconds = 2_048, 15.0
    begun = time.monotonic()
    for number in range(2, 12):
        caller.say(talk.turn(number))

    assert home.standin.refusals
    assert time.monotonic() - begun < home.standin.silent_seconds
    assert room(home) < 2_048


def room(home: House) -> int:
    found = Dialog.objects.filter(llm__provider__name="house").select_related("agent", "llm__provider").latest("pk")
    return known_window(found).room or 0
