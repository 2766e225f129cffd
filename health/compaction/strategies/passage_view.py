"""The context that a choice of passages makes: kept units as they are, and a digest for each gap between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from health.compaction.digest import GAP, Line, written
from health.compaction.ports import Kit
from health.compaction.sources import Source
from health.compaction.units import ContextState, Kind, Role, Unit, highest_priority, synthetic_id, total


@dataclass(frozen=True)
class View:
    state: ContextState
    kit: Kit
    kept: frozenset[str]
    sources: Sequence[Source]

    def fitting(self, order: Sequence[tuple[int, int]], *, budget_tokens: int) -> list[Unit] | None:
        """The units with as many of the chosen passages as fit; the last chosen go first. None if nothing shrinks."""
        number = len(order)
        while True:
            units = self.units(order[:number])
            tokens = self.state.overhead_tokens + total(units)
            if tokens <= budget_tokens or not number:
                return units if tokens < self.state.estimated_tokens else None
            number = min(number - 1, int(number * budget_tokens / tokens))

    def units(self, chosen: Iterable[tuple[int, int]]) -> list[Unit]:
        by_source: dict[int, set[int]] = {}
        for at, number in chosen:
            by_source.setdefault(at, set()).add(number)
        lines: dict[int, list[Line]] = {}
        for at in sorted(by_source):
            source = self.sources[at]
            lines.setdefault(source.unit_at, []).append(Line(source.role, _joined(source, by_source[at]), source.tool))
        units: list[Unit] = []
        numbered = enumerate(self.state.units)
        for is_kept, group in groupby(numbered, key=lambda pair: pair[1].id in self.kept):
            gap = list(group)
            units.extend([unit for _, unit in gap] if is_kept else [self._digest(gap, lines)])
        return list(self.kit.counted(units))

    @staticmethod
    def _digest(gap: Sequence[tuple[int, Unit]], lines: dict[int, list[Line]]) -> Unit:
        covered = [unit for _, unit in gap]
        sources = tuple(dict.fromkeys(one for unit in covered for one in unit.sources))
        return Unit(
            id=synthetic_id("digest", sources),
            role=Role.USER,
            kind=Kind.SUMMARY,
            content=written(line for at, _ in gap for line in lines.get(at, ())),
            timestamp=covered[-1].timestamp,
            priority=highest_priority(covered),
            source_ids=sources,
        )


def _joined(source: Source, numbers: set[int]) -> str:
    """The chosen chunks verbatim, with what stood between neighbours, and a mark where something is left out."""
    text, last = "", None
    for number in sorted(numbers):
        chunk = source.chunks[number]
        if last is not None:
            text += source.text[last.end : chunk.start] if source.chunks[number - 1] is last else GAP
        text += chunk.text
        last = chunk
    return text
