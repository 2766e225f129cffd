"""The coverage receipt: for each message that left the context, how much of it was read by what replaced it.

A reading counts only while something that was made of it stands: a summary that was dropped later read nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from health.compaction.reading.digest import is_notice
from health.compaction.terms.outcome import Extent, Receipt
from health.compaction.terms.ports import Read
from health.compaction.terms.units import Kind, Unit


def removed_ids(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[str, ...]:
    """What no longer stands, not even shortened. In order."""
    standing = {unit.id for unit in after}
    return tuple(unit.id for unit in before if unit.id not in standing)


def altered(before: Sequence[Unit], after: Sequence[Unit]) -> list[Unit]:
    """The originals of what was removed or shortened, in order."""
    said = {unit.id: unit.content for unit in after}
    return [unit for unit in before if said.get(unit.id) != unit.content]


def receipts(before: Sequence[Unit], after: Sequence[Unit], reads: Iterable[Read]) -> tuple[Receipt, ...]:
    """One receipt for every message that was removed or shortened, in order."""
    furthest = _furthest(reads)
    told = {source for unit in after if _is_of_reading(unit) for source in unit.sources}
    left = {unit.id: len(unit.content) for unit in after}
    return tuple(_receipt(unit, _read_of(unit, furthest, told), left) for unit in altered(before, after))


def _is_of_reading(unit: Unit) -> bool:
    """A summary, a digest, or the notice of a choice of passages, which weighed every one of them."""
    return unit.kind is Kind.SUMMARY or is_notice(unit)


def _furthest(reads: Iterable[Read]) -> dict[str, int]:
    return {read.source_id: read.read for read in sorted(reads, key=lambda read: read.read)}


def _read_of(unit: Unit, furthest: dict[str, int], told: set[str]) -> int:
    """An earlier summary is named by itself or by what it stood for."""
    names = (unit.id, *unit.source_ids)
    return 0 if told.isdisjoint(names) else max([furthest.get(name, 0) for name in names])


def _receipt(unit: Unit, read: int, left: dict[str, int]) -> Receipt:
    """What was shortened where it stands was read at least as far as it still stands."""
    total = len(unit.content)
    known = min(total, max(read, left.get(unit.id, 0)))
    return Receipt(source_id=unit.id, extent=_extent(known, total), read=known, total=total)


def _extent(read: int, total: int) -> Extent:
    if read >= total:
        return Extent.IN_FULL
    return Extent.IN_PART if read else Extent.NOT_AT_ALL
