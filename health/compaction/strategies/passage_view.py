"""The context that a choice of passages makes: units kept, messages shortened in place, digests of rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from health.compaction.digest import GAP, LINE_GAP, NO_LONGER, NOTICE, Line, written
from health.compaction.force import in_force
from health.compaction.ports import Kit
from health.compaction.sources import Frame, Source, is_lines
from health.compaction.units import ContextState, Kind, Role, Unit, highest_priority, synthetic_id, total


@dataclass(frozen=True)
class View:
    state: ContextState
    kit: Kit
    frame: Frame
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
        texts = self._texts(chosen)
        units: list[Unit] = []
        gap: list[tuple[int, Unit]] = []
        for at, unit in enumerate(self.state.units):
            if self._is_lined(unit):
                gap.append((at, unit))
            elif stands := self._shortened(unit, texts.get(at, [])):
                units += [*self._digest(gap, texts), stands]
                gap = []
        units += self._digest(gap, texts)
        return list(self.kit.counted(self._noticed(units)))

    def _is_lined(self, unit: Unit) -> bool:
        return is_lines(unit) and unit.id not in self.frame.kept and unit.id not in self.frame.yielding

    def _texts(self, chosen: Iterable[tuple[int, int]]) -> dict[int, list[Line]]:
        """What is left of each unit that is not kept, by its place."""
        by_source: dict[int, set[int]] = {}
        for at, number in chosen:
            by_source.setdefault(at, set()).add(number)
        lines: dict[int, list[Line]] = {}
        for at in sorted(by_source):
            source = self.sources[at]
            lines.setdefault(source.unit_at, []).append(Line(source.role, _joined(source, by_source[at]), source.tool))
        return lines

    def _shortened(self, unit: Unit, lines: Sequence[Line]) -> Unit | None:
        if unit.id in self.frame.kept:
            return unit
        if not lines:
            return unit.saying(GAP.strip()) if unit.id in self.frame.yielding else None
        return unit.saying(lines[0].text)

    @staticmethod
    def _digest(gap: Sequence[tuple[int, Unit]], texts: dict[int, list[Line]]) -> list[Unit]:
        """What is left of tool rounds that stood together; nothing if nothing was chosen."""
        lines = [line for at, _ in gap for line in texts.get(at, ())]
        covered = [unit for _, unit in gap]
        sources = tuple(dict.fromkeys(one for unit in covered for one in unit.sources))
        if not lines:
            return []
        digest = Unit(
            id=synthetic_id("digest", sources),
            role=Role.USER,
            kind=Kind.SUMMARY,
            content=written(lines),
            timestamp=covered[-1].timestamp,
            priority=highest_priority(covered),
            source_ids=sources,
        )
        return [digest]

    def _noticed(self, units: list[Unit]) -> list[Unit]:
        """The units with a notice before the first change: nothing is left out silently."""
        pairs = enumerate(zip(self.state.units, units, strict=False))
        place = next((at for at, (old, new) in pairs if old is not new), len(units))
        while 0 < place < len(units) and units[place].round_id and units[place].round_id == units[place - 1].round_id:
            place -= 1  # never between a call and its results
        sources = tuple(unit.id for unit in self.state.units if unit.id not in self.frame.kept)
        notice = Unit(
            id=synthetic_id("notice", sources),
            role=Role.USER,
            kind=Kind.PLACEHOLDER,
            content="\n".join([NOTICE, *self._no_longer()]),
            timestamp=self.state.units[place].timestamp,
            source_ids=sources,
        )
        return [*units[:place], notice, *units[place:]]

    def _no_longer(self) -> list[str]:
        """What of it is no longer in force: said outside of messages, as words are never altered."""
        gone = in_force(self.state.units).gone
        kept = (unit for unit in self.state.units if unit.id in self.frame.kept and unit.role is Role.USER)
        said = [unit.content[start:end] for unit in kept for start, end in gone.get(unit.id, ())]
        return [NO_LONGER.format(said=" ".join(said))] if said else []


def _joined(source: Source, numbers: set[int]) -> str:
    """The chosen chunks verbatim, with what little stood between them, and a mark where more is left out."""
    text, last = "", None
    for number in sorted(numbers):
        chunk = source.chunks[number]
        if last is not None:
            between = source.text[last.end : chunk.start]
            text += between if not between.strip() else LINE_GAP if "\n" in between else GAP
        elif source.is_call and number:
            text = f"{source.tool}{LINE_GAP}"
        text += chunk.text
        last = chunk
    return text
