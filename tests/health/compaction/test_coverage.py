"""Coverage receipts: what was read of every message that left, and what does not count as reading."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction.accounts import altered, receipts, removed_ids
from health.compaction.terms.outcome import Extent, Receipt
from health.compaction.terms.ports import Read
from health.compaction.terms.units import Kind, Unit
from tests.health.compaction.builders import a_unit


def a_summary(*sources: str, kind: Kind = Kind.SUMMARY, id: str = "s") -> Unit:  # noqa: A002
    return a_unit("in short", id=id, kind=kind, source_ids=sources)


A, B, C = (a_unit("0123456789", id=name) for name in "abc")


@pytest.mark.parametrize(
    ("readings", "extent", "read"),
    [
        ([10], Extent.IN_FULL, 10),
        ([4], Extent.IN_PART, 4),
        ([3, 7, 5], Extent.IN_PART, 7),  # the furthest of several counts
        ([99], Extent.IN_FULL, 10),  # more than there is is all
    ],
)
def test_of_a_message_that_a_summary_read_the_receipt_says_how_much(
    readings: list[int], extent: Extent, read: int
) -> None:
    reads = [Read(source_id="a", read=number, total=max(10, number)) for number in readings]

    assert receipts([A, B], [a_summary("a"), B], reads) == (Receipt("a", extent, read, 10),)


@pytest.mark.parametrize("after", [(B,), (B, a_summary("a"))])
def test_a_message_that_nobody_read_is_not_read_at_all(after: tuple[Unit, ...]) -> None:
    (receipt,) = receipts([A, B], after, [])

    assert (receipt.source_id, receipt.extent) == ("a", Extent.NOT_AT_ALL)


@pytest.mark.parametrize("message", [A, replace(a_summary("x", "y", id="a"), content="0123456789")])
def test_a_reading_counts_only_while_its_summary_stands(message: Unit) -> None:
    reads = [Read(source_id="a", read=10, total=10)]

    (dropped,) = receipts([message], [a_summary("a", kind=Kind.PLACEHOLDER)], reads)

    assert dropped.extent is Extent.NOT_AT_ALL


def test_a_message_shortened_in_its_place_was_read_as_far_as_it_stands() -> None:
    (receipt,) = receipts([A, B], [A.saying("0123"), B], [])

    assert (receipt.extent, receipt.read) == (Extent.IN_PART, 4)


def test_an_earlier_summary_is_named_by_itself_or_by_its_sources() -> None:
    earlier = replace(a_summary("x", "y", id="old"), content="0123456789")
    new = a_summary("x", "y", "a", id="new")

    by_itself = receipts([earlier], [new], [Read(source_id="old", read=10, total=10)])
    by_source = receipts([earlier], [new], [Read(source_id="x", read=10, total=10)])

    assert by_itself[0].extent is Extent.IN_FULL
    assert by_source[0].extent is Extent.IN_FULL


def test_an_empty_message_was_read_in_full() -> None:
    assert receipts([a_unit("", id="e")], [A], [])[0].extent is Extent.IN_FULL


def test_messages_that_stand_have_no_receipt_and_are_not_removed() -> None:
    assert receipts([A, B], [A, B], []) == ()
    assert removed_ids([A, B], [A, B]) == ()


def test_what_is_shortened_is_altered_but_not_removed() -> None:
    before, after = [A, B, C], [A.saying("0"), C]

    assert [unit.id for unit in altered(before, after)] == ["a", "b"]
    assert removed_ids(before, after) == ("b",)
