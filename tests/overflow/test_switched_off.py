"""Compaction that is switched off, as a client of `/v1` sees it: nothing is compacted, nothing is cut in silence."""

from __future__ import annotations

import re

import openai
import pytest

from dialogs.models import LLM, Agent
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, Caller, House, long_answers
from tests.overflow.talk import Talk
from tests.standins.compatible import Lists

WINDOW = 8_192
TALK = Talk(WINDOW, turns=30)


def switched_off(build: Build, **ways: object) -> House:
    home = build(window=WINDOW, reply=long_answers(TALK.chars), **ways)
    LLM.objects.update(compaction="off")
    return home


def until_refused(caller: Caller) -> tuple[int, openai.BadRequestError]:
    """So many turns were answered before the one that was refused."""
    for number in range(1, TALK.turns + 1):
        try:
            caller.say(TALK.turn(number), stream=False)
        except openai.BadRequestError as refused:
            return number - 1, refused
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("listed", [Lists.NOWHERE, Lists.MODELS])
def test_the_servers_refusal_reaches_the_client(build: Build, listed: Lists) -> None:
    home = switched_off(build, lists=listed)

    answered, refused = until_refused(home.caller())

    assert answered > 5
    assert refused.code == "context_length_exceeded"
    assert "maximum context length is 8192 tokens" in str(refused)
    assert len(home.standin.refusals) == 1, "it is asked once"
    assert home.compactions() == 0


def test_an_agent_may_be_off_alone(build: Build) -> None:
    """Who speaks to it is refused; who speaks to its model without it is answered."""
    home = build(window=WINDOW, reply=long_answers(TALK.chars), lists=Lists.MODELS)
    agent = Agent.objects.get(is_direct=False)
    Agent.objects.filter(pk=agent.pk).update(compaction="off")
    caller = home.caller()
    caller.model = agent.slug

    answered, refused = until_refused(caller)
    assert (home.compactions(), refused.code) == (0, "context_length_exceeded")

    caller.model = home.model
    assert caller.answer()
    assert answered > 5
    assert home.compactions() == 1


@pytest.mark.parametrize("way", ["cuts the oldest", "cuts the middle", "cuts at a token"])
@pytest.mark.parametrize("listed", [Lists.NOWHERE, Lists.MODELS])
def test_a_server_that_cuts_is_found_out_and_sent_no_more_than_it_reads(build: Build, listed: Lists, way: str) -> None:
    home = switched_off(build, **WAYS[way] | {"lists": listed})

    answered, refused = until_refused(home.caller())

    assert len(home.standin.seen) == answered, "what would be cut is not sent"
    assert len(home.confirmed_cuts()) == 1
    assert len(re.findall(r"\d,\d{3}", str(refused))) >= 2, "both sizes"
    assert (home.compactions(), home.dialogs()) == (0, 1)
