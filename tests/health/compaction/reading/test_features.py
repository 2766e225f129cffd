"""Features: names, numbers, identifiers and rare words weigh much; filler and untouched table rows little."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from health.compaction.reading import features as names
from health.compaction.reading.features import Features, Names, shape_weight, tokens_of


@pytest.mark.parametrize(
    ("more", "less"),
    [("48213", "Porto"), ("user_id", "Porto"), ("Porto", "heron"), ("heron", "really"), ("heron", "x" * 60)],
)
def test_the_shape_of_a_word_says_what_it_promises(more: str, less: str) -> None:
    assert shape_weight(more) > shape_weight(less)


def test_chinese_is_taken_in_pairs_and_identifiers_and_dates_are_one_feature_each() -> None:
    assert tokens_of("花生过敏") == ["花生", "生过", "过敏"]
    assert tokens_of("REF-48213 on 2026-11-21 at 19:30") == ["REF-48213", "on", "2026-11-21", "at", "19:30"]


def test_what_is_said_everywhere_weighs_less_than_what_is_said_once() -> None:
    features = Features(["heron today", "heron again", "heron still", "stork"], from_tool=[False] * 4)

    assert features.own[3] > features.own[0]


def test_a_row_that_somebody_took_up_is_in_play_and_one_that_nobody_did_is_not() -> None:
    features = Features(["id S4037", "id S4038", "I take S4037"], from_tool=[True, True, False])

    assert features.in_play == [True, False, True]
    assert features.own[0] > features.own[1]


def test_a_thing_that_is_written_in_two_cases_weighs_what_the_more_telling_one_does() -> None:
    features = Features(["heron", "Heron", "stork"], from_tool=[False] * 3)

    assert features.own[0] == features.own[1] > 0
    assert features.names == ["heron", "stork"]


def test_texts_that_say_nothing_weigh_nothing() -> None:
    features = Features(["", "heron", "of the"], from_tool=[False, False, True])

    assert features.each == [[], [0], []]
    assert (features.own[0], features.own[2]) == (0, 0)


def test_what_was_numbered_before_changes_nothing_nor_that_numbering_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["id S4037 of the heron", "Heron 7", "stork", "I take S4037"]
    monkeypatch.setattr(names, "_names", Names())
    first = Features(texts, from_tool=[True, False, False, False])
    Features([f"crate{number}" for number in range(50)], from_tool=[False] * 50)
    monkeypatch.setattr(names, "MOST_NAMES", 10)

    others = [Features(order, from_tool=[True, False, False, False]) for order in (texts, texts)]

    assert len(names._names.known) <= 10
    assert all(vars(one)[name] == vars(first)[name] for one in others for name in ("names", "each", "weights", "own"))


def test_threads_that_number_at_once_give_each_name_one_number() -> None:
    numbered, tokens = Names(), [f"crate{number}" for number in range(2_000)]

    def number(order: list[str]) -> list[int]:
        return [*map(numbered.number, order)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(number, [tokens, tokens[::-1], tokens, tokens[::-1]]))

    assert found[0] == found[2] == found[1][::-1] == found[3][::-1]
    assert [numbered.known[one] for one in found[0]] == tokens
