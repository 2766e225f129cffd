"""What is found when somebody looks: once, and never where nobody does."""

from __future__ import annotations

from health.compaction.terms.outcome import LazySequence


def test_nothing_is_found_before_somebody_looks() -> None:
    looked: list[str] = []

    later = LazySequence(lambda: finding(looked))
    assert looked == []

    assert len(later) == 2
    assert looked == ["once"]


def test_it_is_found_once() -> None:
    looked: list[str] = []
    later = LazySequence(lambda: finding(looked))

    read = (later[0], later[1:], list(later))

    assert read == ("a", ("b",), ["a", "b"])
    assert looked == ["once"]


def test_it_equals_the_tuple_that_is_found_and_reads_like_it() -> None:
    later = LazySequence(lambda: finding([]))

    assert later == ("a", "b")
    assert later != ("a",)
    assert later != 7
    assert repr(later) == "('a', 'b')"


def finding(looked: list[str]) -> tuple[str, ...]:
    looked.append("once")
    return ("a", "b")
