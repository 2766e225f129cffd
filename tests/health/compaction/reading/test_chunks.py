"""Chunks: slices of a text that can be kept alone, down to the records of a result on one line."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.compaction.reading.sentences import LONG, blocks, chunks


@pytest.mark.parametrize("cut", [chunks, blocks])
@given(text=st.text(alphabet='aA1.,;{}[]":\n 。，！?', max_size=900))
def test_chunks_are_slices_in_order_and_miss_only_blanks(cut: object, text: str) -> None:
    found = cut(text)  # type: ignore[operator]

    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(first.end <= then.start for first, then in pairwise(found))
    assert "".join("".join(one.text for one in found).split()) == "".join(text.split())


def test_sentences_stand_alone() -> None:
    assert [one.text for one in chunks("It rains. We stay in!")] == ["It rains.", "We stay in!"]


def test_records_on_one_line_are_cut_where_they_end() -> None:
    rows = json.dumps([{"id": at, "name": f"customer number {at}", "city": "Lisbon", "paid": True} for at in range(9)])

    found = [one.text for one in chunks(rows)]

    assert any('"id": 4, "name": "customer number 4"' in text for text in found)
    assert all(text.count('"id"') <= 2 for text in found)


@pytest.mark.parametrize("text", ["a" * 5000, "字" * 5000, "word " * 2000])
def test_no_chunk_is_long_whatever_the_text(text: str) -> None:
    assert max(len(one.text) for one in chunks(text)) <= LONG


def test_short_lines_of_a_result_are_taken_together() -> None:
    code = "if ready:\n    go()\nelse:\n    wait()\n"

    assert len(blocks(code)) == 1


def test_a_text_without_words_has_no_chunks() -> None:
    assert chunks(" \n\t ") == []
