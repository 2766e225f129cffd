"""Vectors without a model: the same everywhere, length 1, close for texts that share rare words."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from health.compaction.reading import lexical
from health.compaction.reading.lexical import vectors


def test_each_text_has_one_row_of_length_one_or_of_zeros_where_there_are_no_words() -> None:
    rows = vectors(["a red house", "a blue house by the sea", "a red house", "", "   ", "?!…"]).vectors

    assert (rows.shape, rows.dtype) == ((6, lexical.DIMENSIONS), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1, 0, 0, 0], abs=1e-5)
    assert np.array_equal(rows[0], rows[2])
    assert vectors([]).vectors.shape == (0, lexical.DIMENSIONS)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("rotate the signing key", "the signing key was rotated", "lunch is at noon"),
        ("她对花生过敏", "过敏的是花生", "会议改到周五下午"),
    ],
)
def test_texts_that_share_words_are_closer_than_texts_that_do_not(text: str, near: str, far: str) -> None:
    rows = vectors([text, near, far]).vectors

    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_a_rare_word_in_common_counts_for_more_than_a_frequent_one() -> None:
    rows = vectors(["the zebra", "the cat", "a zebra", "the dog", "the cow", "the hen"]).vectors

    assert rows[0] @ rows[2] > rows[0] @ rows[1]


def test_another_process_makes_the_same_vectors() -> None:
    script = (
        "from health.compaction.reading.lexical import vectors;"
        "import hashlib; print(hashlib.sha256(vectors(['one two', '花生过敏']).vectors.tobytes()).hexdigest())"
    )

    made = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }

    assert len(made) == 1


def test_a_message_of_ten_megabytes_is_known_by_its_beginning() -> None:
    long, longer = "word " * 200_000, "word " * 2_000_000

    assert np.array_equal(vectors([long]).vectors, vectors([longer]).vectors)
