"""The laws of compaction, in one place: asserted after every strategy, and on what the library returns.

A law that is broken is told as a reason; an empty list means that all hold. Each check is one pass.
Prompts of ours are no user's words: no law holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from health.compaction.reading.pairing import paired
from health.compaction.terms import wire
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import INSTRUCTING, WRITTEN, Priority, Role, Unit, once


@once
def protected_ids(units: Sequence[Unit]) -> frozenset[str]:
    """The floor that no strategy touches: system prompts, P1, pinned, first request, last user message, open round."""
    kept = {unit.id for unit in units if is_marked(unit)}
    return frozenset(kept.union(unit.id for unit in (*requests(units), *open_round(units))))


@once
def requests(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """What a person said first and last: one message where they said one."""
    said = [unit for unit in units if is_said(unit)]
    return tuple(said if len(said) < 2 else (said[0], said[-1]))


@once
def never_shortened(units: Sequence[Unit]) -> frozenset[str]:
    """What not even the last resort touches: instructions, and what a person said last."""
    return frozenset(unit.id for unit in (*_instructions(units), *requests(units)[-1:]))


def _instructions(units: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple(unit for unit in units if unit.role in INSTRUCTING)


def waits(units: Sequence[Unit]) -> bool:
    """Whether what a person said last has not been taken up by anybody."""
    late = next((unit for unit in reversed(units) if unit.role is Role.ASSISTANT or is_said(unit)), None)
    return late is not None and late.role is Role.USER


def unanswered(units: Sequence[Unit]) -> str:
    """What a person said last, while no answer in words follows it; else nothing."""
    for unit in reversed(units):
        if is_said(unit):
            return unit.content
        if unit.role is Role.ASSISTANT and unit.content.strip() and not unit.calls:
            return ""
    return ""


def open_round(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The round that ends the list, still to be answered by the model; empty when something else ends it."""
    last = units[-1].round_id if units else None
    if last is None:
        return ()
    return tuple(unit for unit in units if unit.round_id == last)


def is_marked(unit: Unit) -> bool:
    """Is it protected for its own sake, wherever it stands?"""
    return unit.role in INSTRUCTING or unit.pinned or unit.priority is Priority.P1


def is_said(unit: Unit) -> bool:
    """A user's own words: not a prompt of the driver's, not a client's frame, not a summary."""
    return unit.role is Role.USER and not (unit.inserted or unit.framed) and unit.kind not in WRITTEN


def broken(
    before: Sequence[Unit],
    after: Sequence[Unit],
    *,
    may_change: Collection[str] = frozenset(),
) -> list[Reason]:
    """The laws that `after` breaks, made from `before`. What is named to have given way may be shorter, or gone.
    What a person said last gives way only where somebody took it up.
    """
    if not after:
        return [Reason(Why.NOTHING_LEFT)] if before else []
    return [
        *_unordered(before, after),
        *_repeated(after),
        *_torn_rounds(before, after),
        *_unanswered(after),
        *_touched(before, after, _may_give_way(before, may_change)),
        *_misplaced_prompt(before, after),
    ]


def broken_request(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The laws that a request breaks in OpenAI's format: no message at all, calls and results that do not pair."""
    if not messages:
        return ["the request has no messages"]
    if any(message.get("role") not in wire.ROLES for message in messages):
        return ["a message has no role that providers know"]
    return paired((str(position), message) for position, message in enumerate(messages)).faults


def _unordered(before: Sequence[Unit], after: Sequence[Unit]) -> list[Reason]:
    place = {unit.id: number for number, unit in enumerate(before)}
    kept = [unit.id for unit in after if unit.id in place]
    return [
        Reason(Why.OUT_OF_ORDER, {"name": later, "other": earlier})
        for earlier, later in pairwise(kept)
        if place[later] < place[earlier]
    ]


def _repeated(after: Sequence[Unit]) -> list[Reason]:
    times = Counter(unit.id for unit in after)
    return [Reason(Why.ID_TWICE, {"name": name, "count": number}) for name, number in times.items() if number > 1]


def _torn_rounds(before: Sequence[Unit], after: Sequence[Unit]) -> list[Reason]:
    """Rounds of which a part is missing, and rounds with something in between."""
    whole, left = _members(before), _members(after)
    torn = [Reason(Why.ROUND_TORN, {"name": name}) for name, ids in left.items() if not whole.get(name, ids) <= ids]
    runs = Counter(name for name, _ in groupby(unit.round_id for unit in after) if name is not None)
    return torn + [Reason(Why.ROUND_INTERRUPTED, {"name": name}) for name, number in runs.items() if number > 1]


def _members(units: Iterable[Unit]) -> dict[str, set[str]]:
    rounds: dict[str, set[str]] = {}
    for unit in units:
        if unit.round_id is not None:
            rounds.setdefault(unit.round_id, set()).add(unit.id)
    return rounds


def _unanswered(after: Sequence[Unit]) -> list[Reason]:
    """Calls without result and results without call, in `after` alone."""
    asked = sorted((unit.round_id or "", call.id) for unit in after for call in unit.calls)
    answered = sorted((unit.round_id or "", unit.answers) for unit in after if unit.answers is not None)
    if asked == answered:
        return []
    return [Reason(Why.UNPAIRED, {"count": len(asked), "results": len(answered)})]


def _may_give_way(before: Sequence[Unit], may_change: Collection[str]) -> frozenset[str]:
    never = never_shortened(before) if waits(before) else {unit.id for unit in _instructions(before)}
    return frozenset(may_change) - never


def _touched(before: Sequence[Unit], after: Sequence[Unit], yielding: Collection[str]) -> list[Reason]:
    now = {unit.id: unit for unit in after}
    protected = protected_ids(before)
    return [
        Reason(Why.PROTECTED_CHANGED if unit.id in now else Why.PROTECTED_REMOVED, {"name": unit.id})
        for unit in before
        if unit.id in protected and not _is_same(unit, now.get(unit.id), yields=unit.id in yielding)
    ]


def _is_same(one: Unit, other: Unit | None, *, yields: bool) -> bool:
    """What yields may be gone, or say something else, but calls and answers stay what they are."""
    if other is None:
        return yields
    said = yields or one.content == other.content
    return said and (one.role, one.attached, one.calls, one.answers, one.image_tokens) == (
        (other.role, other.attached, other.calls, other.answers, other.image_tokens)
    )


def _misplaced_prompt(before: Sequence[Unit], after: Sequence[Unit]) -> list[Reason]:
    """Nothing comes before a system prompt that opened the conversation."""
    opening = before[0] if before and before[0].role in INSTRUCTING else None
    if opening is None or after[0].id == opening.id:
        return []
    return [Reason(Why.BEFORE_SYSTEM_PROMPT, {"name": after[0].id})]
