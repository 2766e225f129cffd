"""Features: names, numbers, identifiers and rare words weigh much; filler and untouched table rows little."""

from __future__ import annotations

import pytest

from health.compaction.features import Features, shape_weight, tokens_of


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


def test_a_row_that_nobody_took_up_weighs_less_than_one_that_somebody_did() -> None:
    features = Features(["id S4037", "id S4038", "I take S4037"], from_tool=[True, True, False])

    assert features.own[0] > 2 * features.own[1]


def test_the_case_of_a_word_makes_no_second_feature() -> None:
    features = Features(["Porto", "porto"], from_tool=[False, False])

    assert features.each[0] == features.each[1]


def test_what_is_new_in_a_record_that_comes_back_weighs_more_than_what_is_new_in_a_new_record() -> None:
    record = ["order W1190 from Lyon to Porto", "two lamps, one desk, grey cover", "paid by gift card on Monday"]
    table = ["bench K3301", "stool K3302", "shelf K3303"]
    texts = [*record, *table, *record, "reference EX3671"]
    messages = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]

    features = Features(texts, from_tool=[True] * len(texts), messages=messages)

    assert features.own[-1] > 2 * features.own[3]


def test_what_is_new_in_a_long_result_is_no_sign_of_something_done() -> None:
    log = [f"step{number} passed" for number in range(200)]
    texts = [*log, *log, "took K3671"]
    messages = [0] * len(log) + [1] * (len(log) + 1)

    features = Features(texts, from_tool=[True] * len(texts), messages=messages)

    assert features.own[-1] < 1.0
