"""What became of each message of a context: kept, shortened, summarised, or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from health.compaction.terms.units import Kind, Unit


class Fate(StrEnum):
    KEPT = "kept"
    SHORTENED = "shortened"  # still in its place, with fewer words
    SUMMARISED = "summarised"  # told by a summary or digest in its place
    DROPPED = "dropped"  # not told, at most counted by a placeholder


def fates(before: Sequence[Unit], after: Sequence[Unit]) -> dict[str, Fate]:
    """The fate of every unit of `before` by its id, in order."""
    now = {unit.id: unit.content for unit in after}
    told = {source for unit in after if unit.kind is Kind.SUMMARY for source in unit.sources}
    return {unit.id: _fate(unit, now.get(unit.id), is_told=not told.isdisjoint(unit.sources)) for unit in before}


def _fate(unit: Unit, content: str | None, *, is_told: bool) -> Fate:
    if content is not None:
        return Fate.KEPT if content == unit.content else Fate.SHORTENED
    return Fate.SUMMARISED if is_told else Fate.DROPPED
