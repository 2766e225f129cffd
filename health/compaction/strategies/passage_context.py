"""Builds the context of chosen passages: kept units, messages shortened in place, digests of tool rounds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from health.compaction.choosing.sources import Frame, Source, is_lines
from health.compaction.reading.digest import (
    GAP,
    HEADER,
    LINE_GAP,
    NO_LONGER,
    NOTICE,
    SHORT_HEADER,
    Line,
    is_digest,
    written,
)
from health.compaction.reading.force import in_force
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import (
    ContextState,
    Kind,
    Role,
    Unit,
    highest_priority,
    synthetic_id,
    total,
    written_for,
)

# Where the first of what was chosen left room, so many of the others are tried.
MOST_TRIED = 8

# A user's message that took more than this share of the limit says at its ends too that more stood there; in smaller
# ones the marks would cost much of what is left.
LARGE_SHARE = 0.1

# Passages that are chosen together: each its source's place, and its own among the chunks of it.
Chosen = tuple[tuple[int, int], ...]


class SizedUnits(NamedTuple):
    units: list[Unit]
    tokens: int


@dataclass(frozen=True)
class PassageContext:
    state: ContextState
    kit: Kit
    frame: Frame
    sources: Sequence[Source]
    # Several choices are tried, which differ in little: what came of the same passages is not made again.
    _lines: dict[tuple[int, frozenset[int]], Line] = field(default_factory=dict, repr=False)
    _short: dict[int, Unit] = field(default_factory=dict, repr=False)
    _digests: dict[tuple[str, int, int, tuple[int, ...]], Unit] = field(default_factory=dict, repr=False)

    def fitting(self, order: Sequence[Chosen], *, budget_tokens: int) -> list[Unit] | None:
        """The units with the first of what was chosen, as many as fit, and what still fits of the others.

        None if nothing shrinks.
        """
        number, made = self._longest(order, budget_tokens)
        taken = list(order[:number])
        tries = (step for step in order[number + 1 :] if self._size(step) <= budget_tokens - made.tokens)
        for step in islice(tries, MOST_TRIED):
            more = self._made([*taken, step])
            if more.tokens <= budget_tokens:
                taken, made = [*taken, step], more
        return made.units if made.tokens < self.state.estimated_tokens else None

    def _longest(self, order: Sequence[Chosen], budget_tokens: int) -> tuple[int, SizedUnits]:
        """How many of the first choices fit, and the units. All are tried, then as many as the last try suggests."""
        sizes = [0, *accumulate(map(self._size, order))]
        fits, over, number = 0, len(order) + 1, len(order)
        best: SizedUnits | None = None
        while over - fits > 1:
            made = self._made(order[:number])
            if made.tokens <= budget_tokens:
                fits, best = number, made
            else:
                over = number
            should_fit = bisect_right(sizes, sizes[number] + budget_tokens - made.tokens) - 1
            number = min(over - 1, max(fits + 1, should_fit))
        return fits, best or self._made(())

    def _made(self, order: Iterable[Chosen]) -> SizedUnits:
        units = self.units(place for step in order for place in step)
        return SizedUnits(units, self.state.overhead_tokens + total(units))

    def _size(self, step: Chosen) -> int:
        return sum(self.kit.tokens(self.sources[at].chunks[number].text) for at, number in step)

    def units(self, chosen: Iterable[tuple[int, int]]) -> list[Unit]:
        texts = self._texts(chosen)
        units: list[Unit] = []
        gap: list[tuple[int, Unit]] = []
        for at in sorted(self._in_any_case | texts.keys()):
            if at in self._lined:
                gap.append((at, self.state.units[at]))
            elif stands := self._standing[at] if at in self._standing else self._saying(at, texts[at][0]):
                if gap:
                    units += self._digest(gap, texts, units)
                    gap = []
                units.append(stands)
        units += self._digest(gap, texts, units)
        return list(self.kit.counted(self._noticed(units)))

    @cached_property
    def _in_any_case(self) -> frozenset[int]:
        """The places of units that are looked at whether or not something of them is chosen."""
        return frozenset(at for at, unit in enumerate(self.state.units) if unit.id in self.frame.kept or is_lines(unit))

    @cached_property
    def _lined(self) -> frozenset[int]:
        return self._in_any_case - self._standing.keys()

    @cached_property
    def _standing(self) -> dict[int, Unit | None]:
        """The kept units by their place, without what is no longer in force; None where nothing else was in one."""
        kept = ((at, unit) for at, unit in enumerate(self.state.units) if unit.id in self.frame.kept)
        left = ((at, self.frame.reduced.get(unit.id, unit)) for at, unit in kept)
        return {at: unit if unit is self.state.units[at] or unit.content else None for at, unit in left}

    def _texts(self, chosen: Iterable[tuple[int, int]]) -> dict[int, list[Line]]:
        """What is left of each unit that is not kept, by its place."""
        by_source: dict[int, set[int]] = {}
        for at, number in chosen:
            by_source.setdefault(at, set()).add(number)
        lines: dict[int, list[Line]] = {}
        for at in sorted(by_source):
            lines.setdefault(self.sources[at].unit_at, []).append(self._line(at, frozenset(by_source[at])))
        return lines

    def _is_large(self, at: int) -> bool:
        """A user's: an answer may be gone on with right where it ends."""
        unit = self.state.units[at]
        is_users = unit.role is Role.USER and at not in self._lined
        return is_users and total([unit]) > LARGE_SHARE * self.state.limit

    def _line(self, at: int, numbers: frozenset[int]) -> Line:
        found = self._lines.get((at, numbers))
        if found is None:
            source = self.sources[at]
            text = _joined(source, numbers)
            if self._is_large(source.unit_at):
                text = _ended(text, source, numbers)
            found = self._lines[at, numbers] = Line(source.role, text, source.tool)
        return found

    def _saying(self, at: int, line: Line) -> Unit:
        found = self._short.get(id(line))  # lines are held, so each has an id of its own
        if found is None:
            (found,) = self.kit.counted([self.state.units[at].saying(line.text)])
            self._short[id(line)] = found
        return found

    def _digest(
        self, gap: Sequence[tuple[int, Unit]], texts: dict[int, list[Line]], before: Iterable[Unit]
    ) -> list[Unit]:
        """What is left of tool rounds that stood together, if anything was chosen; the header is said once in full."""
        lines = tuple(line for at, _ in gap for line in texts.get(at, ()))
        if not lines:
            return []
        header = SHORT_HEADER if any(map(is_digest, before)) else HEADER
        key = header, gap[0][0], gap[-1][0], tuple(map(id, lines))
        if key not in self._digests:
            covered, content = [unit for _, unit in gap], written(lines, header)
            digest = written_for(covered, Kind.SUMMARY, "digest", content, priority=highest_priority(covered))
            (self._digests[key],) = self.kit.counted([digest])
        return [self._digests[key]]

    def _noticed(self, units: list[Unit]) -> list[Unit]:
        """The units with a notice before the first change: nothing is left out silently."""
        pairs = enumerate(zip(self.state.units, units, strict=False))
        place = next((at for at, (old, new) in pairs if old is not new), len(units))
        while 0 < place < len(units) and units[place].round_id and units[place].round_id == units[place - 1].round_id:
            place -= 1  # never between a call and its results
        timestamp = self.state.units[min(place, len(self.state.units) - 1)].timestamp
        return [*units[:place], replace(self._notice, timestamp=timestamp), *units[place:]]

    @cached_property
    def _notice(self) -> Unit:
        sources = tuple(unit.id for unit in self.state.units if unit.id not in self.frame.kept)
        notice = Unit(
            id=synthetic_id("notice", sources),
            role=Role.USER,
            kind=Kind.PLACEHOLDER,
            content="\n".join([NOTICE, *self._no_longer()]),
            source_ids=sources,
        )
        return self.kit.counted([notice])[0]

    def _no_longer(self) -> list[str]:
        """What of it is surely no longer in force: said outside of messages, as words are never altered."""
        force = in_force(self.state.units)
        whole = self.frame.kept - self.frame.reduced.keys()
        kept = (unit for unit in self.state.units if unit.id in whole and unit.role is Role.USER)
        gone = ((unit, at) for unit in kept for at in force.gone.get(unit.id, ()))
        said = [unit.content[start:end] for unit, (start, end) in gone if (unit.id, start) in force.agreed]
        return [NO_LONGER.format(said=" ".join(said))] if said else []


def _joined(source: Source, numbers: frozenset[int]) -> str:
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


def _ended(text: str, source: Source, numbers: frozenset[int]) -> str:
    """The same with a mark at each end behind which something is left out."""
    before, after = source.text[: source.chunks[min(numbers)].start], source.text[source.chunks[max(numbers)].end :]
    if before.strip():
        text = (LINE_GAP if "\n" in before else GAP).lstrip() + text
    return text + (LINE_GAP if "\n" in after else GAP).rstrip() if after.strip() else text
