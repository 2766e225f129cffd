"""Features: names, numbers, identifiers and rare words weigh much; filler and untouched table rows little."""

from __future__ import annotations

import pytest

from health.compaction.reading.features import Features, shape_weight, tokens_of


@pytest.mark.parametrize(
    ("more", "less"),
    [("48213", "Porto"), ("user_id", "Porto"), ("Porto", "heron"), ("heron", "really"), ("heron", "x" * 60)],
)
def test_the_shape_of_a_word_says_what_it_promises(more: str, less: str) -> None:
    assert shape_weight(more) > shape_weight(less)


def test_chinese_is_taken_in_pairs() -> None:
    assert tokens_of("花生过敏") == ["花生", "生过", "过敏"]


def test_identifiers_and_dates_are_one_feature_each() -> None:
    assert tokens_of("REF-48213 on 2026-11-21 at 19:30") == ["REF-48213", "on", "2026-11-21", "at", "19:30"]


def test_what_is_said_everywhere_weighs_less_than_what_is_said_once() -> None:
    features = Features(["heron today", "heron again", "heron still", "stork"], from_tool=[False] * 4)

    assert features.own[3] > features.own[0]


def test_a_row_that_somebody_took_up_is_in_play_and_one_that_nobody_did_is_not() -> None:
    features = Features(["id S4037", "id S4038", "I take S4037"], from_tool=[True, True, False])

    assert features.in_play == [True, False, True]
    assert features.own[0] > features.own[1]


def test_the_case_of_a_word_makes_no_second_feature() -> None:
    features = Features(["Porto", "porto"], from_tool=[False, False])

    assert features.each[0] == features.each[1]
