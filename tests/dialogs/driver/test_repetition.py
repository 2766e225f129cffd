"""Two pieces of one answer read as one text, however the model begins the second."""

from __future__ import annotations

import pytest

from dialogs.driver.repetition import RepetitionFilter
from dialogs.providers.base import Finished, ReasoningDelta, StreamEvent, TextDelta


def told(said: str, *pieces: str, sent: str | None = None) -> str:
    """The whole answer as somebody hears it."""
    repetitions = RepetitionFilter(said, sent=sent)
    return said + "".join(map(repetitions.add, pieces)) + repetitions.end()


@pytest.mark.parametrize(
    ("said", "then", "whole"),
    [
        ("The pump shows 41", "units.", "The pump shows 41 units."),
        ("The pump shows 41 ", "units.", "The pump shows 41 units."),
        ("The pump shows 41", " units.", "The pump shows 41 units."),
        ("The pump shows 41", "shows 41 units.", "The pump shows 41 units."),
        ("The pump shows 41", "The pump shows 41 units.", "The pump shows 41 units."),
        ("First. The pump shows", "...shows 41 units.", "First. The pump shows 41 units."),
        ("First. The pump shows ", "… the pump is old", "First. The pump shows the pump is old"),
        ("It opens the val", "valve", "It opens the valve"),
        ("This is a", "and more", "This is a and more"),
        ("It is well", ", as was expected", "It is well, as was expected"),
        ("It is well (", "so far)", "It is well (so far)"),
        ("- one", "- two", "- one\n- two"),
        ("- one\n", "- two", "- one\n- two"),
        ("That was it.", "\n\nNow this.", "That was it.\n\nNow this."),
        ("水泵显示四十一", "个单位。", "水泵显示四十一个单位。"),
        ("水泵显示四十一", "显示四十一个单位。", "水泵显示四十一个单位。"),
        ("Nothing new", "Nothing new", "Nothing new"),
        ("Nothing new", "", "Nothing new"),
    ],
)
def test_a_model_that_was_asked_in_words_repeats_nothing(said: str, then: str, whole: str) -> None:
    assert told(said, then) == whole
    assert told(said, *then) == whole


@pytest.mark.parametrize(
    ("said", "then", "whole"),
    [
        ("The days are Wednes", "day, Thursday", "The days are Wednesday, Thursday"),
        ("The days are Monday,", " Tuesday", "The days are Monday, Tuesday"),
        ("It was very", " very large", "It was very very large"),
        ("It was large. ", " And old.", "It was large. And old."),
        ("It was large.\n\n", "\n\nAnd old.", "It was large.\n\nAnd old."),
        ("The days are Wednes", "The days are Wednesday", "The days are Wednesday"),
    ],
)
def test_a_model_that_goes_on_by_itself_is_taken_at_its_word(said: str, then: str, whole: str) -> None:
    assert told(said, then, sent=said.rstrip()) == whole
    assert told(said, *then, sent=said.rstrip()) == whole


def test_what_is_no_repetition_is_told_at_once() -> None:
    repetitions = RepetitionFilter("The pump shows 41")

    assert (repetitions.add("un"), repetitions.add("its"), repetitions.add(" of it")) == (" un", "its", " of it")


def test_what_ends_the_answer_comes_after_what_was_held_back() -> None:
    repetitions = RepetitionFilter("The pump and the valve")
    events: list[StreamEvent] = [ReasoningDelta("hm"), TextDelta("the"), Finished("stop")]

    assert [one for event in events for one in repetitions.passed(event)] == [
        ReasoningDelta("hm"),
        TextDelta(" the"),
        Finished("stop"),
    ]
