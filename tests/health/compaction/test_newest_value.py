"""What changed stands after a compaction, with what it is a value of, however small the room is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from health.compaction.reading.digest import NOTICE
from health.services import compact_messages
from health.tokens.messages import count_messages

THINGS = "chimney boiler gutter fence porch cellar attic hedge driveway skylight pantry greenhouse".split()  # noqa: SIM905
ASIDES = (
    ("The wind keeps me awake.", "Earplugs may help, and a heavy curtain."),
    ("What shall I read on the train?", "A short novel is easier to put down when you have to change."),
    ("My knee hurts when I kneel.", "Put a folded towel below it, and take breaks before it hurts."),
)

LONG = "That can be arranged, and here is what else I noticed while I looked through all of it. " * 8


def said(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": role, "content": text} for pair in pairs for role, text in zip(roles, pair, strict=True)]


def a_house(*changed: tuple[str, str]) -> list[dict[str, Any]]:
    """Somebody tells days of repairs, one thing changes early on, and much else is talked of."""
    dice = Random(5)
    told = [(f"The {thing} is done on {3 + at} June.", "Noted.") for at, thing in enumerate(THINGS)]
    aside = [dice.choice(ASIDES) for _ in range(24)]
    return said(("Keep my calendar, please.", "Gladly."), told[0], *changed, *told[1:], *aside, ("What is next?", ""))[
        :-1
    ]


def compacted(messages: list[dict[str, Any]], share: float) -> str:
    limit = int(share * count_messages(messages, ""))
    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")
    return "\n".join(str(message["content"]) for message in outcome.messages)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.15])
def test_a_new_value_that_names_no_subject_stands_with_the_reply_that_does(share: float) -> None:
    moved = a_house(("No, sorry, 28 June.", "Understood: 28 June for the chimney."))

    text = compacted(moved, share)

    assert "28 June for the chimney" in text
    assert "The chimney is done on 3 June" not in text.replace("[No longer so: The chimney is done on 3 June.]", "")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("The pantry gets 4 shelves.", "The pantry gets 6 shelves now.", "6 shelves"),
        ("The porch is painted ochre.", "We prefer the porch in slate grey.", "slate grey"),
    ],
)
def test_five_compactions_in_a_row_change_nothing_of_it(old: str, new: str, says: str) -> None:
    asides = [ASIDES[at % 3] for at in range(12)]
    opened = ("Keep notes, please.", "Gladly.")
    messages = said(opened, (old, "Noted."), *asides, (new, "Noted."), *ASIDES, ("Next?", ""))[:-1]
    limit = count_messages(messages, "") // 3
    for _ in range(5):
        messages = list(compact_messages(messages, limit_tokens=limit, embedder="none").messages)
        text = "\n".join(str(message["content"]) for message in messages)
        assert says in text
        assert old not in text
        messages += said(*ASIDES, ("Next?", ""))[:-1]


QUESTIONS = [
    (
        f"How did people once heat or clean a {thing} in {place}?",
        f"In {place} a {thing} was scrubbed with sand, they say.",
    )
    for thing, place in zip(
        THINGS,
        "Lisbon Oslo Quito Kyoto Dakar Perth Lima Cork Tunis Malmo Hanoi Natal".split(),  # noqa: SIM905
        strict=True,
    )
]


@pytest.mark.parametrize("percent", range(6, 40, 2))
def test_of_two_statements_that_no_word_joins_the_older_never_stands_alone(percent: int) -> None:
    old = ("the plaster cast stays on for 6 weeks", "Noted.")
    new = ("doctor had another look today: 9 weeks, sadly", "Noted.")
    messages = said(("Hello there.", "Hello."), old, *QUESTIONS[:6], new, *QUESTIONS[6:], ("Next?", ""))[:-1]

    text = compacted(messages, percent / 100)

    assert "9 weeks" in text or "6 weeks" not in text


def test_of_the_first_request_only_values_that_were_told_anew_leave() -> None:
    """Its wishes stay as they were said: one may be the goal, and what seems to replace it something else."""
    first = "The goal: build the tool Heron. The deposit is 400 euros."
    later = ("These are the files of heron: a and b.", "Ok, only those files."), ("The deposit is 650 euros.", "Noted.")
    messages = said((first, "Noted."), *later, *[ASIDES[at % 3] for at in range(40)], ("Next?", ""))[:-1]

    text = compacted(messages, 0.4)

    assert "The goal: build the tool Heron." in text
    assert "400 euros" not in text.replace("[No longer so: The deposit is 400 euros.]", "")


@pytest.mark.parametrize(("answer", "is_told"), [("Noted.", True), (LONG, False)])
def test_what_stands_is_called_outdated_only_where_the_assistant_took_note_of_both(answer: str, is_told: bool) -> None:
    first = "The tent for the whole choir and its guests comes on 4 May, so tell Tom."
    messages = said((first, answer), ("The tent comes on 9 May now.", answer), *[ASIDES[at % 3] for at in range(30)])

    text = compacted([*messages, {"role": "user", "content": "Next?"}], 0.5)

    assert first in text
    assert (f"[No longer so: {first}]" in text) is is_told


RULE, BUDGET = "You must always answer in one sentence.", "Correction: the budget is 5,500 euros."
FIRST, QUESTION = "Plan our trip, please.", "Which castle is good for children, and what does the garden cost?"
HELPFUL = "The castle is good for children, and the garden of the castle costs 12 euros."


def a_trip() -> list[dict[str, Any]]:
    """Nobody assents to the rule, other messages say more for their tokens, and one answers what was asked last."""
    told = [(f"What of day {day} in Sintra?", f"On day {day} take tram {day}1. {HELPFUL}") for day in range(1, 12)]
    pairs = (FIRST, "Gladly."), (RULE, HELPFUL), ("The budget is 4,000 euros.", HELPFUL), *told[:6]
    return said(*pairs, (BUDGET, HELPFUL), *told[6:], (QUESTION, ""))[:-1]


def needed(*texts: str) -> int:
    """With room for the notice that more stood there."""
    return count_messages([{"role": "user", "content": text} for text in (NOTICE, *texts)], "")


@pytest.mark.parametrize("more", [*range(0, 60, 6), 100, 200, 400])
def test_a_rule_and_then_the_newest_value_stand_before_answers_wherever_they_fit(more: int) -> None:
    def kept(limit: int) -> list[str]:
        outcome = compact_messages(a_trip(), limit_tokens=limit, embedder="none")
        return [message["content"] for message in outcome.messages]

    assert RULE in kept(needed(FIRST, RULE, QUESTION) + more)
    assert {RULE, BUDGET} <= {*kept(needed(FIRST, RULE, BUDGET, QUESTION) + more)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("indent the html templates with tabs", "two spaces in the templates, the linter screams about tabs"),
        ("users log in with api keys", "security won't have that, users log in through the company sso"),
        ("limit the retries to 5", "wait, not 5, i meant 3"),
        ("choir is at half past seven", "half the altos show up late, back to seven for choir"),
        ("小程序主色用湖蓝", "算了，老板嫌湖蓝太冷，主色用橘红"),
        ("登录接口超时设成5秒就行", "线上老有人登不上，登录接口的超时放宽到12秒吧"),
    ],
)
def test_a_change_stands_in_one_clause_and_its_reason_in_another(old: str, new: str) -> None:
    text = compacted(said(("Hello.", "Hello."), (old, LONG), *ASIDES, (new, LONG), ("Go on.", ""))[:-1], 0.6)

    assert new in text
    assert old not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the dentist is on tuesday at 10", "if tuesday turns out bad i'd move the dentist to thursday, we'll see"),
        ("Ask Noor about the catering.", "Hanna helps out with the catering, too."),
        ("the wedding is on june 12", "the hen party is on june 5, the wedding cake tasting on may 20"),
        ("给登录模块写单元测试", "写得不错，现在给支付模块写单元测试"),
    ],
)
def test_a_clause_that_only_looks_like_a_change_replaces_nothing(old: str, new: str) -> None:
    assert old in compacted(said(("Hello.", "Hello."), (old, LONG), *ASIDES, (new, LONG), ("Go on.", ""))[:-1], 0.6)
