"""The memory of counts: bounded, and what is in use stays."""

from __future__ import annotations

from health.tokens.counters import Memory


def test_it_forgets_what_was_not_asked_for_and_stays_bounded() -> None:
    memory = Memory(generation=100)
    memory.keep([("always", 6)])

    for number in range(1_000):
        memory.keep([(f"text {number}", number)])
        assert memory.recall(["always"]) == [6]
        assert len(memory) <= 201

    assert memory.recall(["text 0", "text 999"]) == [None, 999]


def test_a_size_of_nothing_is_remembered_too() -> None:
    memory = Memory()
    memory.keep([("", 0)])

    assert memory.recall(["", "?"]) == [0, None]
