"""Strategy `prune_with_agent`: a model decides which older messages go and which become a summary.

It is shown the unprotected rounds before the last three messages and the last tool round, in pieces of at most half
the window, so system prompt, task, recent messages and active results are not its to touch. Its answer is
checked; at least 40 % must go, and beyond 60 % only what it takes to get under the bound. Any failure
changes nothing and says so: the chain goes on to `keep_last_five`.

What it decided beforehand (`kit.prepared`) is followed instead of asking it, as long as that holds and suffices.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from health.compaction.choosing.pruning import Change, Rejected, decision
from health.compaction.choosing.summaries import fault, fenced
from health.compaction.laws.cuts import Cut, cuts
from health.compaction.laws.floor import oversized
from health.compaction.reading.markers import harmless
from health.compaction.terms.ports import (
    Attempt,
    Kit,
    Need,
    Prepared,
    Prune,
    StrategyRun,
    Summarised,
    read_in_full,
    unchanged,
)
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import (
    WRITTEN,
    ContextState,
    Kind,
    Unit,
    all_sources,
    highest_priority,
    total,
    written_for,
)
from health.compaction.trimming import placeholders

LEAST_FREED, MOST_FREED, AIM = 0.4, 0.6, 0.5
RECENT_MESSAGES = 3
LONGEST_NOTE = 200
Deciding = Generator[Need, Any, tuple[list[Change], str]]


@strategy(
    icon="compress",
    label=_("Prune with agent"),
    choice=_("Let the pruning agent decide"),
    message=_("Summarizing with the pruning agent…"),
    expecting=_("Summarizing with the pruning agent… (est. %(before)s → %(after)s tokens)"),
    pulses=True,
)
def prune_with_agent(state: ContextState, kit: Kit) -> StrategyRun:
    offered = offered_to(state.units)
    if not offered:
        return unchanged(state, Why.NOTHING_OLDER)
    if too_large := oversized(state):
        # What it may decide about is not what is too much.
        return unchanged(state, next(iter(too_large.values())))
    if kit.prepared and kit.prepared.holds_for(_units(offered)):
        attempt = yield from _pruned(_prepared(kit.prepared, offered), state, kit)
        if attempt.changed:
            return attempt
    return (yield from _pruned(_asked(state, offered), state, kit))


def _pruned(deciding: Deciding, state: ContextState, kit: Kit) -> StrategyRun:
    """The state as the decisions leave it, or the reason for which they are not followed."""
    try:
        changes, said = yield from deciding
        written = yield from _summaries(changes, state, kit)
    except Rejected as rejected:
        return unchanged(state, Reason(Why.PRUNING_NOT_USED, {"why": rejected.why}))
    chosen = _as_far_as_wanted(changes, written, state)
    after = _applied(chosen, written, state, kit)
    freed = 1 - after.estimated_tokens / state.estimated_tokens
    if freed < LEAST_FREED:
        return unchanged(state, Reason(Why.PRUNED_TOO_LITTLE, {"freed": freed, "wanted": LEAST_FREED}))
    sizes = {"freed": freed, "before": state.estimated_tokens, "after": after.estimated_tokens}
    why = Reason(Why.PRUNED_AND_SAID, {**sizes, "said": said}) if said else Reason(Why.PRUNED, sizes)
    gone = {one for change in chosen for one in change.ids}
    # The agent was shown all of them in full.
    reads = read_in_full(unit for unit in state.units if unit.id in gone and unit.kind not in WRITTEN)
    return Attempt(state=after, changed=True, why=why, reads=reads)


def offered_to(units: Sequence[Unit]) -> list[Cut]:
    """The cuts that the agent may decide about."""
    found = cuts(units)
    end = len(units) - RECENT_MESSAGES
    last_round = next((cut for cut in reversed(found) if any(unit.calls for unit in cut.units)), None)
    return [
        cut
        for cut in found
        if not cut.protected
        and cut.start + len(cut.units) <= end
        and cut is not last_round
        and any(unit.kind is not Kind.PLACEHOLDER for unit in cut.units)
    ]


def questions(state: ContextState, offered: Sequence[Cut], *, then: int = 0) -> list[tuple[list[Cut], Prune]]:
    """What the agent is asked, piece by piece. `then`: how many tokens there will be when its decision is followed,
    where that is later. Raises Rejected where one round is larger than a piece may be.
    """
    then = max(state.estimated_tokens, then)
    wanted = min(AIM * then, state.config.accept * state.limit)
    share = max(0.0, 1 - (then - wanted) / sum(cut.tokens for cut in offered))
    pieces = _pieces(offered, most=state.limit // 2)
    asked = [(piece, _units(piece)) for piece in pieces]
    return [
        (piece, Prune(units=units, target_tokens=round(total(units) * share), task=state.task))
        for piece, units in asked
    ]


def _asked(state: ContextState, offered: Sequence[Cut]) -> Deciding:
    """All changes that the agent decides on, oldest first, and what it says about them. Raises Rejected."""
    answers: list[tuple[Sequence[Cut], str]] = []
    for piece, question in questions(state, offered):
        answer = yield question
        if answer is None:
            raise Rejected(Why.NO_ANSWER)
        answers.append((piece, answer))
        followed(answers)  # What cannot be followed ends it at once: the next piece would be read in vain.
    return followed(answers)


def _prepared(prepared: Prepared, offered: Sequence[Cut]) -> Deciding:
    """The same from what the agent was shown beforehand. All messages since then stay. Raises Rejected."""
    yield from ()
    return followed([(offered, answer) for answer in prepared.answers])


def followed(answers: Sequence[tuple[Sequence[Cut], str]]) -> tuple[list[Change], str]:
    """The changes of all answers, oldest first, and what was said about them: each answer with the cuts that it may be
    about. Raises Rejected."""
    place = {unit.id: at for at, unit in enumerate(unit for piece, _ in answers for unit in _units(piece))}
    changes: list[Change] = []
    said: list[str] = []
    for piece, answer in answers:
        decided = decision(answer, _units(piece))
        changes += _by_rounds(decided.changes, piece)
        said += [" ".join(harmless(decided.summary).split())] if decided.summary.strip() else []
    return sorted(changes, key=lambda change: min(place[one] for one in change.ids)), " ".join(said)[:LONGEST_NOTE]


def _units(piece: Sequence[Cut]) -> tuple[Unit, ...]:
    return tuple(unit for cut in piece for unit in cut.units)


def _pieces(offered: Sequence[Cut], *, most: int) -> list[list[Cut]]:
    """The cuts in order, in as many pieces as keep each within `most` tokens. Raises Rejected if one cut does not."""
    pieces: list[list[Cut]] = [[]]
    room = most
    for cut in offered:
        if cut.tokens > most:
            raise Rejected(Why.ROUND_TOO_LARGE, tokens=cut.tokens)
        if cut.tokens > room:
            pieces.append([])
            room = most
        pieces[-1].append(cut)
        room -= cut.tokens
    return pieces


def _by_rounds(changes: Sequence[Change], piece: Sequence[Cut]) -> list[Change]:
    """The summaries, and one change for each round that is dropped. Raises Rejected where a round would be torn."""
    summaries = [change for change in changes if change.text]
    dropped = {one for change in changes if not change.text for one in change.ids}
    rounds = [tuple(unit.id for unit in cut.units) for cut in piece]
    round_of = {one: ids for ids in rounds for one in ids}
    for group in (dropped, *(set(change.ids) for change in summaries)):
        if any(not group.issuperset(round_of[one]) for one in group):
            raise Rejected(Why.HALF_A_ROUND)
    return [*summaries, *(Change(ids=ids) for ids in rounds if dropped.issuperset(ids))]


def _summaries(changes: Sequence[Change], state: ContextState, kit: Kit) -> Generator[Need, Any, dict[Change, Unit]]:
    """The counted unit of each change with a text. Raises Rejected for a text that fails a model summary's checks."""
    units = {unit.id: unit for unit in state.units}
    place = {unit.id: at for at, unit in enumerate(state.units)}
    written: dict[Change, Unit] = {}
    for change in (one for one in changes if one.text):
        gone = [units[one] for one in sorted(change.ids, key=place.__getitem__)]
        content = fenced(harmless(change.text), count=len(all_sources(gone)))
        (unit,) = kit.counted([written_for(gone, Kind.SUMMARY, "summary", content, priority=highest_priority(gone))])
        answer = Summarised(text=change.text, finished=True, read_chars={})
        why = yield from fault(answer, gone, tokens=total([unit]), max_tokens=total(gone))
        if why is not None:
            raise Rejected(Why.SUMMARY_NOT_TRUSTED, why=why)
        written[change] = unit
    return written


def _as_far_as_wanted(changes: Sequence[Change], written: dict[Change, Unit], state: ContextState) -> list[Change]:
    """The oldest changes, as many as free 60 % and reach the accepted share of the limit."""
    tokens = {unit.id: total([unit]) for unit in state.units}
    least = min((1 - MOST_FREED) * state.estimated_tokens, state.config.accept * state.limit)
    left, chosen = state.estimated_tokens, list[Change]()
    for change in changes:
        if left <= least:
            break
        chosen.append(change)
        left -= sum(tokens[one] for one in change.ids) - (total([written[change]]) if change.text else 0)
    return chosen


def _applied(chosen: Sequence[Change], written: dict[Change, Unit], state: ContextState, kit: Kit) -> ContextState:
    """The state with summaries where the last message stood that they tell of, and placeholders for what is dropped."""
    place = {unit.id: at for at, unit in enumerate(state.units)}
    at_last = {max(change.ids, key=place.__getitem__): written[change] for change in chosen if change.text}
    summarised = {one for change in chosen if change.text for one in change.ids}
    dropped = frozenset(one for change in chosen if not change.text for one in change.ids)
    units = (at_last.get(unit.id, unit) for unit in state.units if unit.id in at_last or unit.id not in summarised)
    return state.with_units(placeholders.with_gaps(units, dropped, state.config, kit))
