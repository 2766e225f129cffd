"""Chooses sentences, list items and records inside the messages, and keeps those that are needed most.

Where a task is stated, what matches it; otherwise, and beside it, as many distinct names, numbers and events as
the budget holds. What is chosen stays verbatim in its own message; of tool rounds it stands in a digest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import Any

from health.compaction.choosing.choose import GAP_TOKENS, Candidate, Chooser
from health.compaction.choosing.sources import Frame, Source, begins, is_lines, leaning, sources_of, unsaid
from health.compaction.choosing.worth import Piece, brevity, matches, priors
from health.compaction.laws.cuts import Cut, cuts, ids_of
from health.compaction.laws.invariants import is_marked, requests
from health.compaction.laws.weave import ledger_beside
from health.compaction.reading.digest import without
from health.compaction.reading.features import Features
from health.compaction.reading.force import Place, in_force
from health.compaction.reading.ledger import laid_down
from health.compaction.reading.ledger_patterns import EntryKind
from health.compaction.reading.signs import is_question
from health.compaction.strategies.passage_context import Chosen, PassageContext
from health.compaction.terms.ports import Attempt, ForcedShortening, Kit, Need, StrategyRun, read_in_full, unchanged
from health.compaction.terms.pressure import targets
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import UNTAGGED, ContextState, Role, Unit, total, turn_to_leave

# The newest messages stay whole within this share of what is free, what the user typed within that one.
TAIL_SHARE, USER_SHARE = 0.07, 0.45
# Factors of worth: a row of a tool's result that somebody took up later; a statement of the user (questions have
# answers, mostly); a value that holds; what changed a value; a reply that names what a value is of. Set on one half of
# conversations with statements and corrections, judged on the other.
IN_PLAY = 1.25
STATEMENT, HOLDS, CHANGED, NAMED = 2.0, 6.0, 12.0, 7.0
# The last statement is worth so many times the first: it may change that one in words that no pattern knows.
LAST_STATED = 2.0
LINE_TOKENS = 3
# By `turn_to_leave`, the factor of a passage's worth: no passage tagged P3 or P2 comes before one that is not.
LATER = (1e-6, 1e-3, 1.0)
# So many more tokens are chosen than there is room for. What fits is known only when all is counted together; short
# passages take the place of a long one that does not.
SPARE = 400
# Where fewer tokens are left, the room is not filled with what says nothing new.
LEAST_ROOM = 40


@strategy(
    icon="star",
    label=_("Select passages"),
    choice=_("Choose passages from all that was said"),
    message=_("Selecting the passages that are needed most…"),
)
def select_passages(state: ContextState, kit: Kit) -> StrategyRun:
    """Fill the context with passages up to `fill` of the limit, and not above the goal."""
    target = min(int(state.config.select_passages.fill * state.limit), targets(state.config, limit=state.limit).goal)
    if state.estimated_tokens <= target:
        return unchanged(state, Why.EVERYTHING_FITS)
    attempt = yield from passages_within(target, state, kit)
    more = _without_idle_ledger(state, attempt, kit)
    if more is state:
        return attempt
    fuller = yield from passages_within(target, more, kit)
    return replace(fuller, state=state.with_units(fuller.state.units)) if fuller.changed else attempt


def passages_within(target: int, state: ContextState, kit: Kit) -> StrategyRun:
    frame = framed(state, kit, target_tokens=target)
    sources = sources_of(state.units, frame)
    if frame.room <= 0:
        return unchanged(state, Why.NO_ROOM_FOR_PASSAGES)
    order = yield from chosen_order(sources, state, kit, frame)
    view = PassageContext(state=state, kit=kit, frame=frame, sources=sources)
    units = view.fitting(order, budget_tokens=target)
    if units is None:
        return unchanged(state, Why.PASSAGES_NOT_SMALLER)
    # Every chunk of what is not kept was weighed: all of it was read.
    reads = read_in_full(unit for unit in state.units if unit.id not in frame.kept)
    return Attempt(state=state.with_units(units), changed=True, reads=reads, forced=left_out_of_request(frame, state))


def _without_idle_ledger(state: ContextState, attempt: Attempt, kit: Kit) -> ContextState:
    """The state without what an earlier ledger took and the next one will not need: that is room for passages."""
    if not (attempt.changed and state.ledger_tokens):
        return state
    idle = state.ledger_tokens - ledger_beside(attempt.state.units, state, kit)
    if idle < LEAST_ROOM:
        return state
    return replace(state, overhead_tokens=state.overhead_tokens - idle, ledger_tokens=state.ledger_tokens - idle)


def framed(state: ContextState, kit: Kit, *, target_tokens: int) -> Frame:
    """What stays as it is (all that is protected, and the newest cuts), and the tokens left beside it."""
    pieces = cuts(state.units)
    guarded = [cut for cut in pieces if cut.protected]
    reduced = _in_force_only(state.units, kit)
    spared = sum(total([unit]) - _left(reduced[unit.id]) for unit in state.units if unit.id in reduced)
    free = target_tokens - state.overhead_tokens - sum(cut.tokens for cut in guarded) + spared
    newest = tail(pieces, budget_tokens=int(free * TAIL_SHARE))
    room = free - sum(cut.tokens for cut in newest)
    return Frame(kept=ids_of(guarded) | ids_of(newest), room=room, reduced=reduced)


def _in_force_only(units: Sequence[Unit], kit: Kit) -> dict[str, Unit]:
    """The first request without the values that the user told anew since; whole where it is marked."""
    firsts = [unit for unit in requests(units)[:-1] if not is_marked(unit)]
    gone = in_force(tuple(units)).outgrown
    short = kit.counted(without(unit, gone[unit.id]) for unit in firsts if unit.id in gone)
    return {unit.id: unit for unit in short}


def _left(unit: Unit) -> int:
    return total([unit]) if unit.content else 0


def left_out_of_request(frame: Frame, state: ContextState) -> tuple[ForcedShortening, ...]:
    """What was left out of the first request, by name."""
    sizes = {unit.id: total([unit]) for unit in state.units if unit.id in frame.reduced}
    found = [(name, {"before": sizes[name], "after": _left(unit)}) for name, unit in frame.reduced.items()]
    return tuple(
        ForcedShortening(why=Reason(Why.NO_LONGER_IN_FORCE, {"name": name, **tokens}), ids=frozenset([name]), **tokens)
        for name, tokens in found
    )


def tail(pieces: Sequence[Cut], *, budget_tokens: int) -> list[Cut]:
    """The newest unprotected cuts that fit the budget whole, without a gap but for what is tagged P2 or P3."""
    found: list[Cut] = []
    for cut in reversed(pieces):
        if cut.protected or cut.turn < UNTAGGED:
            continue
        budget_tokens -= cut.tokens
        if budget_tokens < 0:
            break
        found.append(cut)
    return found


def chosen_order(
    sources: Sequence[Source], state: ContextState, kit: Kit, frame: Frame
) -> Generator[Need, Any, list[Chosen]]:
    """What is chosen, the most needed first; somewhat more than there is room for."""
    places = [(at, number) for at, source in enumerate(sources) for number in range(len(source.chunks))]
    pieces = pieces_of(sources, places, state, kit)
    features = Features([piece.text for piece in pieces], from_tool=[piece.role is Role.TOOL for piece in pieces])
    asked = yield from matches(pieces, features, state)
    prior = priors(pieces)
    starts = begins(sources, places, state.units)
    leans = leaning(sources, places, starts, in_force(tuple(state.units)).beside)
    labels = [label_tokens(state.units[source.unit_at], kit) for source in sources]
    turns = [LATER[turn_to_leave([state.units[source.unit_at]])] for source in sources]
    candidates = [
        Candidate(
            piece.tokens + GAP_TOKENS,
            prior[piece.role] * _favour(piece, taken) * max(held, _statement(piece)) * turns[at],
            at,
            labels[at],
            lean,
        )
        for piece, (at, _), lean, taken, held in zip(
            pieces, places, leans, features.in_play, map(_held(state.units), starts), strict=True
        )
    ]
    chooser = Chooser(candidates, features)
    if not frame.kept:  # where nothing must stay, the end of the newest message does
        chooser.take(range(len(places))[-1:])
    changed = in_force(tuple(state.units)).changed if asked.messages else ()  # no answer takes their room
    for one in _laid_down(pieces, starts, kit, changed):
        chooser.fill([one], frame.room - chooser.spent)
    untagged = [turn == LATER[-1] for turn in turns]
    asked_for = [one for one in asked.messages if all(untagged[places[at][0]] for at in one)]
    chooser.take(_asked_for(asked_for, chooser, budget=asked.budget(frame.room - chooser.spent)))
    _typed(sources, places, chooser, untagged, budget=int(USER_SHARE * (frame.room - chooser.spent)))
    chooser.choose(frame.room - chooser.spent)
    chooser.choose(SPARE)
    if frame.room - chooser.spent >= LEAST_ROOM:
        rest = _saying_nothing_new(pieces, chooser, [one for one in state.units if one.id in frame.kept])
        rest.sort(key=lambda one: turns[places[one][0]], reverse=True)
        chooser.fill(rest, frame.room - chooser.spent + SPARE)
    return [tuple(places[one] for one in step) for step in chooser.steps]


def _laid_down(
    pieces: Sequence[Piece], starts: Sequence[Place | None], kit: Kit, changed: Collection[Place]
) -> list[int]:
    """The rules in force, the constraints, then what else changed something; of each the newest first."""
    kinds = {(entry.source_id, entry.text): entry.kind for entry in laid_down(kit.entries)}
    newest = [(at, kinds.get((pieces[at].source_id, pieces[at].text))) for at in reversed(range(len(pieces)))]
    binding = [at for wanted in (EntryKind.RULE, EntryKind.CONSTRAINT) for at, kind in newest if kind is wanted]
    return [*binding, *(at for at, kind in newest if kind and starts[at] in changed)]


def _saying_nothing_new(pieces: Sequence[Piece], chooser: Chooser, kept: Sequence[Unit]) -> list[int]:
    """What is left when nothing says anything new: the newest first, mere courtesy last, and nothing twice."""
    left = unsaid([piece.text for piece in pieces], chooser.chosen, kept)
    return sorted(left, key=lambda one: not chooser.features.own[one])


def _favour(piece: Piece, taken_up: bool) -> float:
    return brevity(piece) * (IN_PLAY if taken_up and piece.role is Role.TOOL else 1.0)


def _statement(piece: Piece) -> float:
    is_statement = piece.role is Role.USER and not is_question(piece.text, heard=False)
    return STATEMENT if is_statement else 1.0


def _held(units: Sequence[Unit]) -> Callable[[Place | None], float]:
    """What a sentence is worth for what it states, by where it begins."""
    force = in_force(tuple(units))
    ranks = {place: (at + 0.5) / len(force.stated) for at, place in enumerate(force.stated)}
    worths = {place: HOLDS * LAST_STATED ** (rank - 0.5) for place, rank in ranks.items()}
    worths |= dict.fromkeys(force.named, NAMED)
    worths |= dict.fromkeys(force.changed, CHANGED)
    worths |= dict.fromkeys(force.doubted, 1.0)
    return lambda start: worths.get(start, 1.0) if start else 1.0


def _asked_for(messages: Sequence[list[int]], chooser: Chooser, *, budget: int) -> list[int]:
    """The pieces of the messages that match the task best, whole messages within the budget."""
    found: dict[int, None] = {}
    for pieces in messages:
        cost = chooser.cost(pieces)
        if cost <= budget and not found.keys() >= set(pieces):
            budget -= cost
            found |= dict.fromkeys(pieces)
    return [*found]


def _typed(
    sources: Sequence[Source],
    places: Sequence[tuple[int, int]],
    chooser: Chooser,
    untagged: Sequence[bool],
    *,
    budget: int,
) -> None:
    """What the user typed comes first: all of it, the newest first, or the sentences that say most within the budget.

    It is few of the tokens and names most of what is used later. What is tagged P2 or P3 is chosen behind all others.
    """
    chunks_of: dict[int, list[int]] = {}
    for one, (at, _place) in enumerate(places):
        if sources[at].role is sources[at].voice is Role.USER and untagged[at]:
            chunks_of.setdefault(at, []).append(one)
    typed = [one for at in sorted(chunks_of, reverse=True) for one in chunks_of[at]]
    if sum(map(chooser.cost, chunks_of.values())) <= budget:
        chooser.take(typed)
    else:
        chooser.choose(budget, frozenset(typed))


def pieces_of(
    sources: Sequence[Source], places: Sequence[tuple[int, int]], state: ContextState, kit: Kit
) -> list[Piece]:
    texts = [sources[at].chunks[number].text for at, number in places]
    sizes = kit.counter.count(texts)
    return [
        Piece(text, sources[at].voice, state.units[sources[at].unit_at].id, tokens, len(sources[at].text))
        for (at, _), text, tokens in zip(places, texts, sizes, strict=True)
    ]


def label_tokens(unit: Unit, kit: Kit) -> int:
    """What a message costs beside its text, once something of it stands."""
    if is_lines(unit):
        return LINE_TOKENS
    return kit.counter.per_message + unit.image_tokens + (kit.tokens(unit.attached) if unit.attached else 0)
