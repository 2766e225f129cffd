"""Matching: rare words of the question count, common ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from health.compaction.choosing.worth import Question, fused, stem
from health.compaction.reading.features import Features

TEXTS = ["the flat on Tanner Row", "we booked a table", "rain again today", "table tennis on Sunday"]


def question(text: str) -> Question:
    return Question(text, Features(TEXTS, from_tool=[False] * len(TEXTS)))


@pytest.mark.parametrize(("one", "other"), [("booked", "booking"), ("tables", "table"), ("moved", "moving")])
def test_forms_of_a_word_meet(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["ids", "kauppatori", "W4173664", "node1s", "花生"])
def test_a_short_word_one_without_an_ending_and_what_is_no_plain_word_stay(word: str) -> None:
    assert stem(word) == word


def test_the_chunk_with_the_rarest_words_of_the_question_scores_best() -> None:
    asked = question("Which flat on Tanner Row was it?")
    scores = asked.bm25([5, 4, 3, 4], asked.features.each)

    assert int(np.argmax(scores)) == 0
    assert scores[2] == 0


def test_a_question_about_nothing_in_the_history_is_not_specific() -> None:
    assert question("Please continue with the current work").specific == 0
    assert question("").specific == 0


def test_a_question_about_one_thing_is_specific_and_about_more_than_enough_entirely() -> None:
    assert question("Tanner Row").specific > 0.3
    assert question(" ".join(TEXTS)).specific == 1


def test_what_is_said_everywhere_in_several_forms_asks_for_nothing() -> None:
    asked = Question("book", Features(["booked a booking"] * 3, from_tool=[False] * 3))

    assert asked.specific == 0
    assert asked.said_by(asked.features.each[0]) == 0
    assert not asked.bm25([3, 3, 3], asked.features.each).any()


@pytest.mark.parametrize(("text", "share"), [("Tanner Row", 1), ("Tanner table", 0.5), ("Tanner zebra", 0.5)])
def test_a_message_says_so_much_of_a_question_whether_others_say_the_rest_or_nobody(text: str, share: float) -> None:
    asked = question(text)

    assert asked.said_by(asked.features.each[0]) == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize("count", [1, 4])
def test_a_message_of_average_length_scores_as_its_words_are_rare(count: int) -> None:
    asked = question("Tanner Row")

    assert asked.bm25([9] * count, asked.features.each[:count])[0] == pytest.approx(sum(asked.rarity.values()))


def test_what_names_many_things_asks_for_none_of_them() -> None:
    assert question("Tanner Row").narrow == 1
    assert question(" ".join(TEXTS)).narrow < 0.6


def test_ranks_of_two_scores_are_added_and_zero_has_no_rank() -> None:
    both = fused(np.array([3.0, 2.0, 0.0]), np.array([1.0, 0.5, 0.0]), weight=0.3)

    assert both[0] > both[1] > 0
    assert both[2] == 0
