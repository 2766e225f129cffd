"""Names before what several people say: whose words they are, not what these tell."""

from __future__ import annotations

import pytest

from health.compaction.reading.force import without_force
from health.compaction.reading.value_statements import statements
from health.compaction.reading.values import Said, heard
from health.compaction.terms.units import Role

CHAT = ("Greta: morning all", "Omar: hello", "Greta: the coffee machine works", "Omar: finally")
CHAT_ZH = ("小艾：早上好", "阿文：你好", "小艾：咖啡机修好了", "阿文：终于")


def said(*lines: str) -> list[Said]:
    return [Said(Role.USER, line) for line in lines]


def outdated(*lines: str) -> list[str]:
    talk = said(*lines)
    return [talk[out.message].text[out.start : out.end] for out in without_force(talk, heard(talk))]


def test_a_name_before_what_several_people_say_is_no_part_of_it() -> None:
    told = list(statements(said(*CHAT, "[3 May] Omar: the standup is at 10:30")))

    assert [(one.speaker, one.text) for one in told][-1] == ("Omar", "the standup is at 10:30")
    assert not any(one.names for one in told)


def test_a_talk_in_one_message_has_its_speakers() -> None:
    lines = ("Greta: the pier is wet", "Omar: the boats are out", "Greta: the gulls are loud", "Omar: the bay is calm")
    told = list(statements(said("\n".join(lines))))

    assert [one.speaker for one in told] == ["Greta", "Omar", "Greta", "Omar"]


@pytest.mark.parametrize(
    "lines",
    [
        # What is told of things.
        ("Deadline: Friday.", "Budget: not more than 500.", "Deadline: Monday.", "Budget: not more than 700."),
        ("Kitchen: tiles.", "Bath: paint.", "Kitchen: paint.", "Bath: tiles, as in the kitchen or a bath by the sea."),
        ("预算：不超过五百元", "截止：周五", "预算：不超过七百元", "截止：周一"),
        # Who speaks once, or alone.
        ("Greta: the standup is at 10:30", "Omar: fine"),
        ("Note: the standup is at 10:30", "Note: bring cake"),
        # Most say nothing of who they are.
        (*CHAT, *("the tide is high", "boats are out", "the pier is wet", "gulls are loud", "it rains")),
    ],
)
def test_other_words_before_a_colon_are_no_speakers(lines: tuple[str, ...]) -> None:
    assert not any(one.speaker for one in statements(said(*lines)))


@pytest.mark.parametrize(
    "lines",
    [
        (*CHAT, "Greta: I take the train at 9:15", "Omar: I take the train at 9:40"),
        (*CHAT, "Greta: my flight lands at 9:15", "Omar: my flight lands at 9:40 now"),
        (*CHAT, "Greta: the flight lands at 9:15", "Omar: my flight lands at 9:40 now"),
        (*CHAT, "Greta: I take the 9:15", "Omar: no, the 9:40"),
        (*CHAT, "Greta: the train is at 9:15", "Omar: I take the train at 9:40"),
        # Whom somebody thanks, where somebody else is, a day that two things have.
        (*CHAT, "Greta: Omar is in Lyon until Wed", "Greta: thanks Omar, works now"),
        (*CHAT, "Greta: Omar is in Lyon until Wed", "Omar: Greta is out until Wed, ping me instead"),
        (*CHAT, "Greta: Omar takes the sync worker", "Greta: Omar is out until Mon, ping me instead"),
        (*CHAT, "Greta: the talk is on Fri at 9:15", "Omar: the lift is checked on Fri at 10:30"),
        (*CHAT, "Greta: the review is on Tuesday", "Omar: nice weekend, talk Monday"),
        (*CHAT_ZH, "小艾：我坐9:15的火车", "阿文：我坐9:40的火车"),
    ],
)
def test_what_one_says_of_themselves_stands_beside_what_another_does(lines: tuple[str, ...]) -> None:
    assert outdated(*lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        (*CHAT, "Greta: I take the train at 9:15", "Omar: fine", "Greta: I take the train at 9:40 now"),
        (*CHAT, "Greta: the standup is at 10:00", "Omar: fine", "Omar: the standup moves to 10:30"),
        (*CHAT, "Greta: the standup is at 10:00", "Omar: I moved the standup to 10:30"),
        (*CHAT, "Greta: the standup is at 10:00", "Omar: no, 10:30"),
        (*CHAT, "Greta: Omar is in Lyon until Wed", "Omar: fine", "Greta: Omar is out until Fri"),
        (*CHAT_ZH, "小艾：例会在10:00开始", "阿文：好的", "阿文：例会改到10:30开始"),
    ],
)
def test_what_all_share_may_be_changed_by_anybody(lines: tuple[str, ...]) -> None:
    assert outdated(*lines) == [lines[4]]
