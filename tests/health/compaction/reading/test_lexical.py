"""Vectors without a model: the same everywhere, length 1, close for texts that share rare words."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from health.compaction.reading import lexical
from health.compaction.reading.lexical import vectors


def alike(one: str, other: str, *others: str) -> float:
    rows = vectors([one, other, *others]).vectors
    return float(rows[0] @ rows[1])


def test_each_text_has_one_row_of_length_one() -> None:
    rows = vectors(["a red house", "a blue house by the sea"]).vectors

    assert rows.shape == (2, lexical.DIMENSIONS)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize("text", ["", "   ", "?!…"])
def test_a_text_without_words_is_a_row_of_zeros(text: str) -> None:
    rows = vectors([text, "words"]).vectors

    assert not rows[0].any()


def test_no_texts_have_no_rows() -> None:
    assert vectors([]).vectors.shape == (0, lexical.DIMENSIONS)


def test_equal_texts_are_equal() -> None:
    assert alike("the deploy failed on Friday", "the deploy failed on Friday") == pytest.approx(1.0)


def test_texts_that_share_words_are_closer_than_texts_that_do_not() -> None:
    near = alike("rotate the signing key", "the signing key was rotated", "lunch is at noon")
    far = alike("rotate the signing key", "lunch is at noon", "the signing key was rotated")

    assert near > far + 0.2


def test_a_rare_word_in_common_counts_for_more_than_a_frequent_one() -> None:
    rows = vectors(["the zebra", "the cat", "a zebra", "the dog", "the cow", "the hen"]).vectors

    assert rows[0] @ rows[2] > rows[0] @ rows[1]


def test_chinese_texts_are_compared_too() -> None:
    near = alike("她对花生过敏", "过敏的是花生", "会议改到周五下午")
    far = alike("她对花生过敏", "会议改到周五下午", "过敏的是花生")

    assert near > far + 0.2


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
