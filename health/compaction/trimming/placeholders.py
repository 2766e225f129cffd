"""What stands where units were dropped: one short unit that says so, at the gap, and never costs more than it saves.

The first line is one of three, word for word; the second counts the messages,
and names the first and last in the archive where the configuration says "linked".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from health.compaction.config import ContextConfig, PlaceholderDetail
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import (
    ContextState,
    Kind,
    Priority,
    Unit,
    all_sources,
    synthetic_id,
    total,
    written_for,
)

LOW_RELEVANCE = "[Omitted low-relevance prior context]"
EARLIER = "[Omitted earlier context]"
LINKED = "[Omitted – see archive]"

# Ids may come from a client: they must not bring line breaks or role markers into a text of ours.
_UNSAFE = re.compile(r"[^\w.:-]")
_ID_CHARS = 48
_COUNT = re.compile(r"^([0-9]{1,6}) message", re.MULTILINE)


def header_for(config: ContextConfig, brief: str) -> str:
    linked = config.discard_low_rel.placeholder_detail is PlaceholderDetail.LINKED
    return LINKED if linked else brief


def placeholder(gone: Sequence[Unit], *, header: str) -> Unit:
    """The unit, uncounted, for what was dropped; placeholders among `gone` are merged into it."""
    sources = all_sources(gone)
    unnamed = sum(_message_count(unit) - 1 for unit in gone if not unit.source_ids)
    content = wording(sources, header=header, count=len(sources) + unnamed)
    # Its id is made from the units, not their sources: two earlier summaries may tell of the same message.
    own_id = synthetic_id("placeholder", (unit.id for unit in gone))
    return written_for(gone, Kind.PLACEHOLDER, "placeholder", content, id=own_id, timestamp=gone[0].timestamp)


def of_earlier(gone: Sequence[Unit], state: ContextState, kit: Kit) -> Unit:
    """The counted placeholder of a state for messages that were dropped because they are old."""
    (unit,) = kit.counted([placeholder(gone, header=header_for(state.config, EARLIER))])
    return unit


def wording(sources: Sequence[str], *, header: str, count: int) -> str:
    counted = f"{count} message{'s' * (count > 1)}"
    if header != LINKED:
        return f"{header}\n{counted}"
    ends = " to ".join(dict.fromkeys(_UNSAFE.sub("_", source)[:_ID_CHARS] for source in (sources[0], sources[-1])))
    return f"{header}\n{counted}: {ends}"


def _message_count(unit: Unit) -> int:
    """How many messages a unit stands for that names none: one that came back from a client tells it in its text."""
    said = _COUNT.search(unit.content) if unit.kind is Kind.PLACEHOLDER else None
    return int(said[1]) if said else 1


def with_gaps(
    units: Iterable[Unit], gone: frozenset[str], config: ContextConfig, kit: Kit, *, brief: str = EARLIER
) -> tuple[Unit, ...]:
    """The units with one placeholder for each run of `gone` ones, merged with those already beside it. `brief` is its
    first line, unless the configuration wants the one that names the archive.

    A run that is not larger than its placeholder stays: dropping it would save nothing. One batch of counting.
    """
    runs, header = list(_runs(units, gone)), header_for(config, brief)
    written = kit.counted(placeholder(run, header=header) for run, open_gap in runs if open_gap)
    replacements = iter(written)
    result: list[Unit] = []
    for run, open_gap in runs:
        result.extend(_smaller(run, next(replacements)) if open_gap else run)
    return tuple(result)


def with_one(state: ContextState, gone: frozenset[str], kit: Kit) -> tuple[Unit, ...]:
    """The units with one placeholder, at the first gap, for all of `gone`; as they were if that is not smaller."""
    dropped = [unit for unit in state.units if unit.id in gone]
    if not dropped:
        return state.units
    written = of_earlier(dropped, state, kit)
    if total([written]) >= total(dropped):
        return state.units
    first = dropped[0].id
    units = (written if unit.id == first else unit for unit in state.units if unit.id == first or unit.id not in gone)
    return with_gaps(units, frozenset(), state.config, kit)


def _runs(units: Iterable[Unit], gone: frozenset[str]) -> Iterator[tuple[tuple[Unit, ...], bool]]:
    """The units in runs, each with whether a placeholder may take its place."""
    for goes, group in groupby(units, key=lambda unit: unit.id in gone or _mergeable(unit)):
        run = tuple(group)
        yield run, goes and (len(run) > 1 or run[0].id in gone)


def _mergeable(unit: Unit) -> bool:
    return unit.kind is Kind.PLACEHOLDER and not unit.pinned and unit.priority is not Priority.P1


def _smaller(run: tuple[Unit, ...], written: Unit) -> tuple[Unit, ...]:
    return (written,) if total([written]) < total(run) else run
