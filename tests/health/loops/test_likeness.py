"""How alike two texts are: from 0 to 1, both ways the same, in any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.loops import MOST_CHARACTERS, likeness

REPORT = "The boiler beside the turbine shows 41 units after the third check, as was expected of it."


@given(st.text(), st.text())
def test_it_is_a_share_and_the_same_both_ways(first: str, second: str) -> None:
    like = likeness(first, second)

    assert 0 <= like <= 1
    assert like == likeness(second, first)


@given(st.text())
def test_a_text_is_wholly_like_itself(text: str) -> None:
    assert likeness(text, text) == 1


@pytest.mark.parametrize(
    ("first", "second", "least", "most"),
    [
        (REPORT, REPORT.replace("41", "42"), 0.9, 0.99),
        (REPORT, REPORT.upper().replace(" ", "\n "), 1, 1),
        (REPORT, "I cannot find the file that you named. Where is it?", 0, 0.2),
        (
            "我再检查一次锅炉旁边的涡轮机读数，然后告诉你结果。",
            "我再检查一次锅炉旁边的水泵读数，然后告诉你结果。",
            0.7,
            0.95,
        ),
        ("ok", "no", 0, 0),
        ("", "", 1, 1),
        ("", "ok", 0, 0),
    ],
)
def test_what_a_person_would_call_alike_is(first: str, second: str, least: float, most: float) -> None:
    assert least <= likeness(first, second) <= most


def test_of_a_long_text_the_ends_are_read() -> None:
    middle = "x" * MOST_CHARACTERS

    assert likeness(f"begin{middle}end", f"begin{middle}{middle}end") == 1
