"""What statements are about. How they replace each other is told in test_ledger."""

from __future__ import annotations

import pytest

from health.compaction.reading.subjects import stale_words, subject_of, types_of, withdrawn_words


@pytest.mark.parametrize(
    ("sentence", "about", "value"),
    [
        ("The budget for the party is 500 euros.", {"budget", "party"}, "500 euros"),
        ("Make the budget 700.", {"budget"}, "700"),
        ("The meetings have been moved to Friday", {"meeting"}, "friday"),
        ("Port: 8080", {"port"}, "8080"),
        ("Please use spaces for the tests.", {"indentation", "test"}, "space"),
        ("Petra: my name is Ana.", {"petra", "name"}, "ana"),
        ("把会议改到周五。", {"会议"}, "周五"),
    ],
)
def test_a_plain_form_tells_what_it_is_about(sentence: str, about: set[str], value: str) -> None:
    subject = subject_of(sentence)

    assert subject is not None
    assert (subject.words, subject.value) == (about, value)


@pytest.mark.parametrize(
    "sentence",
    [
        "It is 5.",
        "The sky is blue.",
        "Let's go.",
        "The code is 41 " + "and so on " * 40,
        "The code is 41, " + "x" * 90,
        "The rule is that you must not pass 5.",
        "今天是5号。",
    ],
)
def test_what_is_no_plain_form_is_about_nothing(sentence: str) -> None:
    assert subject_of(sentence) is None


def test_a_number_within_a_date_is_no_number_too() -> None:
    assert types_of("on may 17 at 3pm for 20 people") == {"day": 1, "time": 1, "number": 1}
    assert types_of("5月17日下午3点20个人") == {"day": 1, "time": 1, "number": 1}


def test_what_is_withdrawn_and_what_is_stale_are_named_by_their_words() -> None:
    assert withdrawn_words("Forget what I said about the blue tiles.") == {"blue", "tile"}
    assert withdrawn_words("Drop the table users.") == set()
    assert stale_words("Use spaces instead of tabs.") == {"tab"}
    assert stale_words("Use tabs.") == set()
