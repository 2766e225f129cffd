"""The laws of compaction: each is kept by what keeps it, and told when something breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from health.compaction.laws.invariants import (
    broken,
    broken_request,
    never_shortened,
    open_round,
    protected_ids,
    requests,
    unanswered,
    waits,
)
from health.compaction.terms.reasons import Reason
from health.compaction.terms.units import Call, Kind, Role, Unit
from tests.health.compaction.builders import a_round, a_unit, p1, p3, pinned

SYSTEM = a_unit("Be brief.", id="system", role=Role.SYSTEM)
FIRST = a_unit("build me a boat", id="first")
ANSWER = a_unit("with pleasure", id="answer", role=Role.ASSISTANT)
OLD = a_round("looking", "oak", "pine", id="old")
LAST = a_unit("now paint it", id="last")
OPEN = a_round("mixing", "red", id="open")
SUMMARY = a_unit("[Summary…]", id="summary-1", kind=Kind.SUMMARY)
PROMPT = a_unit("write down what matters", id="prompt", inserted=True)
LOOSE = (replace(OLD[0], round_id=None, calls=OLD[0].calls[:1]), replace(OLD[1], round_id=None))
BEFORE = (SYSTEM, FIRST, ANSWER, *OLD, LAST, *OPEN)
SMALLEST = (SYSTEM, FIRST, SUMMARY, LAST, *OPEN)


def told(faults: Sequence[Reason]) -> list[str]:
    return [str(reason) for reason in faults]


@pytest.mark.parametrize(
    ("units", "names"),
    [
        (BEFORE, "system first last open-a open-t0"),
        ((FIRST, p1(ANSWER), pinned(OLD[0]), p3(a_unit(id="idle")), LAST), "first answer old-a last"),
        ((FIRST, a_unit("No tools now.", id="late", role=Role.DEVELOPER), LAST, ANSWER), "first late last"),
        ((SUMMARY, PROMPT, FIRST, ANSWER, LAST, PROMPT, SUMMARY, ANSWER), "first last"),
        ((a_unit("example", framed=True), replace(ANSWER, framed=True), FIRST, a_unit("more"), LAST), "first last"),
        ((FIRST, ANSWER), "first"),
        ((), ""),
    ],
    ids=["all of it", "tags and pins", "developers", "ours are nobody's", "a frame is no request", "one", "nothing"],
)
def test_the_floor_is_prompt_first_request_last_words_marks_and_open_round(units: tuple[Unit, ...], names: str) -> None:
    assert protected_ids(units) == set(names.split())


def test_a_round_is_open_only_while_it_ends_the_context() -> None:
    assert open_round((FIRST, *OPEN)) == OPEN
    assert open_round((FIRST, *OPEN, ANSWER)) == ()
    assert open_round(()) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, BEFORE),
        (BEFORE, SMALLEST),
        (BEFORE, (SYSTEM, FIRST, *OLD, LAST, *OPEN)),
        ((), (FIRST,)),
        ((), ()),
        # Without a system prompt anything may come first.
        ((FIRST, ANSWER, LAST), (SUMMARY, FIRST, LAST)),
        # Calls without a round pair with results without one.
        ((FIRST, *LOOSE, LAST), (FIRST, *LOOSE, LAST)),
    ],
)
def test_what_keeps_the_laws_is_not_blamed(before: Sequence[Unit], after: Sequence[Unit]) -> None:
    assert broken(before, after) == []


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ((), "nothing is left"),
        ((SYSTEM, FIRST, *OLD, ANSWER, LAST, *OPEN), "old-a comes after answer|answer comes after old-t1"),
        ((SYSTEM, FIRST, LAST, LAST, *OPEN), "last stands 2 times"),
        ((SYSTEM, FIRST, *OLD[:2], LAST, *OPEN), "old lost a part"),
        ((SYSTEM, FIRST, *OLD[1:], LAST, *OPEN), "old lost a part"),
        ((SYSTEM, FIRST, OLD[0], SUMMARY, *OLD[1:], LAST, *OPEN), "old is interrupted"),
        ((SYSTEM, FIRST, LAST, OPEN[0]), "open-t0 is protected and was removed"),
        ((SUMMARY, SYSTEM, FIRST, LAST, *OPEN), "summary-1 stands before the system prompt"),
        ((SYSTEM, SUMMARY, LAST, *OPEN), "first is protected and was removed"),
        ((SYSTEM, FIRST, LAST.saying("now paint it!"), *OPEN), "last is protected and was changed"),
        ((SYSTEM, FIRST, LAST, OPEN[0], OPEN[1].saying("r")), "open-t0 is protected and was changed"),
        ((SYSTEM, replace(FIRST, attached="new"), LAST, *OPEN), "first is protected and was changed"),
    ],
)
def test_each_law_is_told_when_it_is_broken(after: Sequence[Unit], sentence: str) -> None:
    found = told(broken(BEFORE, after))

    assert any(part in line for line in found for part in sentence.split("|")), found
    assert len(found) == 1 or "2 times" not in sentence, "what stands twice is not out of order too"


def test_what_gave_way_by_name_may_be_shorter_or_gone_but_nothing_else() -> None:
    shorter = (SYSTEM, FIRST, LAST, OPEN[0], OPEN[1].saying("r"))
    silent = (SYSTEM, FIRST, LAST, OPEN[0].saying(""), OPEN[1])
    without = (SYSTEM, LAST)

    assert broken(BEFORE, shorter, may_change={"open-t0"}) == []
    assert told(broken(BEFORE, silent, may_change={"open-t0"})) == ["open-a is protected and was changed"]
    assert broken(BEFORE, without, may_change={"first", "open-a", "open-t0"}) == []
    assert told(broken(BEFORE, without, may_change={"open-a", "open-t0"})) == ["first is protected and was removed"]


def test_what_gave_way_still_calls_and_answers_what_it_did() -> None:
    other = (SYSTEM, FIRST, LAST, OPEN[0], replace(OPEN[1], attached="more"))

    assert told(broken(BEFORE, other, may_change={"open-t0"})) == ["open-t0 is protected and was changed"]


@pytest.mark.parametrize("name", ["system", "last"])
def test_instructions_and_the_newest_words_never_give_way(name: str) -> None:
    before = BEFORE[: -len(OPEN)]
    after = [unit.saying("less") if unit.id == name else unit for unit in before]

    assert told(broken(before, after, may_change={name})) == [f"{name} is protected and was changed"]


def test_requests_are_what_a_person_said_first_and_last_and_the_newest_is_never_shortened() -> None:
    assert requests((SYSTEM, SUMMARY, PROMPT, FIRST, ANSWER, LAST)) == (FIRST, LAST)
    assert (requests((SYSTEM, FIRST)), requests((SYSTEM, SUMMARY))) == ((FIRST,), ())
    assert never_shortened(BEFORE) == {"system", "last"}
    assert never_shortened((SYSTEM, FIRST, ANSWER)) == {"system", "first"}
    # Nothing said is nothing unanswered.
    assert (waits((SYSTEM,)), unanswered((SYSTEM, SUMMARY))) == (False, "")


def test_what_a_person_said_last_gives_way_only_where_somebody_took_it_up() -> None:
    after = [unit.saying("less") if unit is LAST else unit for unit in BEFORE]

    assert waits(BEFORE[: -len(OPEN)])
    assert not waits(BEFORE)
    assert broken(BEFORE, after, may_change={"last"}) == []
    assert never_shortened((SYSTEM, SUMMARY)) == {"system"}


@pytest.mark.parametrize(
    ("after", "is_waiting"),
    [
        ((), True),
        ((a_unit("No tools now.", role=Role.DEVELOPER),), True),
        ((ANSWER,), False),
        ((ANSWER, PROMPT), False),  # which nobody said
        (OPEN, False),
    ],
)
def test_what_a_person_said_waits_until_somebody_takes_it_up(after: tuple[Unit, ...], is_waiting: bool) -> None:
    assert waits((FIRST, ANSWER, LAST, *after)) is is_waiting


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ((), "now paint it"),
        (OPEN, "now paint it"),  # no answer in words
        ((OPEN[0].saying("I look."), OPEN[1]), "now paint it"),  # nor what is said beside a call
        ((a_unit(" \n", role=Role.ASSISTANT),), "now paint it"),
        ((ANSWER,), ""),
        ((ANSWER, SUMMARY), ""),
    ],
)
def test_words_are_unanswered_until_an_answer_in_words_follows(after: tuple[Unit, ...], words: str) -> None:
    assert unanswered((FIRST, ANSWER, LAST, *after)) == words


def test_a_round_that_someone_else_wrote_must_pair_too() -> None:
    stray = a_unit("found", id="new", role=Role.TOOL, answers="c9", round_id="new-round")
    asking = a_unit("", id="new", role=Role.ASSISTANT, calls=(Call(id="c9", name="ls", arguments=""),), round_id="n")

    assert told(broken(BEFORE, (*SMALLEST, stray))) == ["1 calls have 2 results, or those of other calls"]
    assert told(broken(BEFORE, (*SMALLEST, asking))) == ["2 calls have 1 results, or those of other calls"]


CALL = {"id": "c1", "function": {"name": "ls", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
HELLO = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "no messages"),
        ([HELLO, ASKS], "'c1' of ls was never answered"),
        ([HELLO, RESULT], "messages[1] is the result"),
        ([ASKS, HELLO, RESULT], "messages[2] is the result"),
        ([{"content": "hello"}], "no role"),
        ([HELLO, {"role": "bot", "content": "hello"}], "no role"),
    ],
)
def test_a_request_that_providers_refuse_is_told(messages: list[dict[str, Any]], sentence: str) -> None:
    told = broken_request(messages)

    assert any(sentence in line for line in told), told


def test_a_request_whose_rounds_pair_is_fine() -> None:
    assert broken_request([HELLO, ASKS, RESULT, HELLO]) == []
