"""Text as every database takes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.common.text import storable

# Surrogates too, which Hypothesis leaves out of plain text.
ANY_TEXT = st.text(st.characters(categories=None))


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("a\0b", "a␀b"),
        ("half \ud83d", "half \ufffd"),
        ("\udc4d half", "\ufffd half"),
        ("", ""),
        ("👩‍👩‍👧‍👦 مرحبا 过敏\r\n\t\x7f\ufeff", "👩‍👩‍👧‍👦 مرحبا 过敏\r\n\t\x7f\ufeff"),
    ],
)
def test_only_what_no_database_takes_is_replaced(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(ANY_TEXT)
def test_every_text_becomes_storable_and_stays_as_long(text: str) -> None:
    stored = storable(text)

    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert len(stored) == len(text)


@given(ANY_TEXT)
def test_storable_text_is_left_alone(text: str) -> None:
    assert storable(storable(text)) == storable(text)
