"""Excerpts obey their share, are verbatim and in order, and show where something is left out."""

from __future__ import annotations

import time

import pytest

from health.compaction.trimming.excerpts import ExcerptRequest, excerpts
from tests.health.compaction.builders import KIT

PLACES = ("kitchen", "cellar", "attic", "garden", "garage", "hall", "study", "porch", "stable", "tower")
TEXT = " ".join(f"The {place} is painted in colour number {i} today." for i, place in enumerate(PLACES))


def an_excerpt(text: str, ratio: float = 0.5, *, focus: str = "", least: int = 0) -> str:
    (excerpt,) = excerpts(
        [ExcerptRequest(text=text, role="user", ratio=ratio)], least_tokens=least, kit=KIT, focus=focus
    )
    return excerpt


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.6, 0.9])
def test_the_share_is_obeyed_by_the_counter(ratio: float) -> None:
    assert KIT.tokens(an_excerpt(TEXT, ratio)) <= ratio * KIT.tokens(TEXT)


def test_what_is_kept_is_verbatim_and_in_order() -> None:
    pieces = [piece for piece in an_excerpt(TEXT).split(" […] ") if piece]

    places = [TEXT.index(piece.strip()) for piece in pieces]

    assert places == sorted(places)


def test_what_the_focus_asks_for_is_kept() -> None:
    assert "The stable is painted" in an_excerpt(TEXT, 0.2, focus="Which colour has the stable?")


def test_a_decision_is_kept_before_talk() -> None:
    talk = " ".join(f"Well, {word} and so on it goes." for word in ("this", "that", "there", "here", "now", "then"))

    assert "We decided to use port 8443." in an_excerpt(f"{talk} We decided to use port 8443. {talk}", 0.3)


def test_chinese_is_excerpted_by_sentences() -> None:
    text = "".join(f"第{i}个房间今天刷成了新的颜色。" for i in range(20))

    excerpt = an_excerpt(text)

    assert 0 < KIT.tokens(excerpt) <= 0.5 * KIT.tokens(text)
    assert all(piece.strip() in text for piece in excerpt.split("[…]"))


def test_a_short_text_stays() -> None:
    assert an_excerpt(TEXT, least=1000) == TEXT


def test_one_long_sentence_stays_rather_than_nothing() -> None:
    sentence = "words " * 30 + "end."

    assert an_excerpt(sentence) == sentence


def test_an_excerpt_is_not_excerpted_again() -> None:
    once = an_excerpt(TEXT)

    assert an_excerpt(once) == once


def test_what_was_trimmed_is_not_excerpted() -> None:
    text = f"{TEXT} [… 90 similar lines left out …] {TEXT}"

    assert an_excerpt(text) == text


def test_lines_that_are_left_out_leave_a_line() -> None:
    text = "".join(f"- The {place} has number {i}.\n" for i, place in enumerate(PLACES))

    assert "\n […] \n" in an_excerpt(text) or an_excerpt(text).endswith(" […] \n")


def test_texts_are_weighed_together_and_come_back_in_order() -> None:
    wanted = [ExcerptRequest(text=TEXT, role="user", ratio=0.5), ExcerptRequest(text="short", role="user", ratio=0.5)]

    assert excerpts(wanted, least_tokens=10, kit=KIT)[1] == "short"


def test_four_thousand_sentences_are_weighed_at_once() -> None:
    text = (TEXT + "\n") * 400
    begun = time.process_time()

    an_excerpt(text)

    assert time.process_time() - begun < 3
