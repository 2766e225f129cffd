"""What is said again is told once; what only looks alike is another fact."""

from __future__ import annotations

import time

import pytest

from health.compaction.choosing.sources import Repeats
from health.services import compact_messages
from health.tokens.messages import count_messages


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Berth 7 is free.", "Berth 7 is free."),
        ("Berth 7 is free", "berth 7 is  free!"),
        ("Please list the open invoices.", "List the open invoices, please"),
        ("Don't touch the lower shelf.", "don’t touch the lower shelf"),
        ("Run the tests of the parser.", "Run the tests of the parser again, please."),
        (  # the later one says it all, and something more
            "I sorted the letters by the year of their stamp.",
            "I sorted the letters by the year of their stamp, mostly.",
        ),
        ("请把七号泊位的名单发给我。", "把七号泊位的名单发给我吧"),
        ("Thanks!", "Thanks!"),
    ],
)
def test_the_same_in_other_case_punctuation_or_courtesy_is_a_repeat(earlier: str, later: str) -> None:
    assert Repeats([later]).again(earlier)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Berth 7 is free.", "Berth 8 is free."),
        ("Paint the gate red.", "Paint the gate blue."),
        ("We sail from Molde to Florø on the early tide.", "We sail from Florø to Molde on the early tide."),
        ("Berth 7 is free.", "Is berth 7 free?"),
        ("Berth 7 is free.", "Berth 7 is free?"),
        ("Berth 7 is free.", "Berth 7 is not free."),
        ("We do tell the harbour of each boat.", "We don't tell the harbour of each boat."),
        ("The crane lifts the blue hull out of the basin.", "The crane never lifts the blue hull out of the basin."),
        ("You may open the valve of the third tank.", "You may open the valve of the third tank if it is cold."),
        ("The cook orders bread for the crew of the tug.", "The cook orders bread for the crew of the tug 3."),
        ("Total is a + b.", "Total is a - b."),
        ("七号泊位空着。", "八号泊位空着。"),
        ("七号泊位今天是空着的。", "七号泊位今天不是空着的。"),
        ("Thanks!", "Hello!"),
        (  # what is told later says less
            "I sorted the letters by the year of their stamp, mostly.",
            "I sorted the letters by the year of their stamp.",
        ),
    ],
)
def test_what_only_looks_alike_is_no_repeat(earlier: str, later: str) -> None:
    assert not Repeats([later]).again(earlier)


def test_of_near_repeats_the_newest_stands() -> None:
    asked = "Sort the letters in the blue box by the year of their stamp and list who sent them."
    aside = [
        {"role": role, "content": f"{role} {n}: {'tide ' * 40}"} for n in range(6) for role in ("user", "assistant")
    ]
    first, last = {"role": "user", "content": "Let us begin."}, {"role": "user", "content": "What next?"}
    again = [{"role": "user", "content": text} for text in (asked, asked.lower(), f"Please, {asked[:-1]} again!")]
    messages = [first, again[0], *aside[:4], again[1], *aside[4:], again[2], last]

    outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") * 3 // 5, embedder="none")

    assert [one["content"] for one in outcome.messages if "stamp" in one["content"].lower()] == [again[2]["content"]]


def test_time_is_in_proportion_to_what_was_said() -> None:
    def seconds(count: int) -> float:
        texts = [f"The crate {n % 7} of the lot {n} goes down to the depot at noon." for n in range(count)]
        began = time.process_time()
        Repeats(texts)
        return time.process_time() - began

    seconds(100)

    assert min(seconds(4_000) for _ in range(3)) < 10 * min(seconds(1_000) for _ in range(3)) + 0.05
