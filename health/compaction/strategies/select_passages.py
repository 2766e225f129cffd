"""Chooses sentences, list items and records inside the messages, and keeps those that are needed most.

Where a task is stated, what matches it; otherwise, and beside it, as many distinct names, numbers and events as
the budget holds. What is chosen stays verbatim in its own message; of tool rounds it stands in a digest.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import Any

from health.compaction.choose import GAP_TOKENS, Candidate, Chooser
from health.compaction.cuts import Cut, cuts, ids_of
from health.compaction.features import Features
from health.compaction.force import in_force
from health.compaction.ports import Asking, Attempt, Kit, Need, Read, unchanged
from health.compaction.pressure import marks
from health.compaction.reasons import Why
from health.compaction.sources import Frame, Source, begins, is_lines, leaning, sources_of
from health.compaction.strategies.passage_view import View
from health.compaction.units import ContextState, Role, Unit
from health.compaction.value_statements import is_question, states_a_value
from health.compaction.worth import Piece, bonuses, brevity, priors

# The newest messages stay whole within this share of what is free, what the user typed within that one.
TAIL_SHARE, USER_SHARE = 0.1, 0.45
# What a passage adds is divided by its tokens; of a whole message that was typed, by this power of them.
EXPONENT, TYPED_EXPONENT = 1.0, 0.4
# A row of a result that holds what somebody took up is worth so much more, a sentence that states a value too. What was
# asked has been answered since.
IN_PLAY, STATED, ASKED = 2.0, 1.5, 0.4
# So is what the user states and what holds, more so where it changed something, and a reply that names of what a value
# is: set on one half of conversations with corrections, judged on the other.
HOLDS, CHANGED, NAMED = 1.3, 3.0, 2.0
LINE_TOKENS = 3
# What tokens that are counted one by one may differ from those of the whole: a share, and the most tokens.
MARGIN, MOST_MARGIN = 0.03, 40


def select_passages(state: ContextState, kit: Kit) -> Asking:
    """Fill the context with passages up to `fill` of the limit, and not above the goal."""
    target = min(int(state.config.select_passages.fill * state.limit), marks(state.config, limit=state.limit).goal)
    if state.estimated_tokens <= target:
        return unchanged(state, Why.EVERYTHING_FITS)
    frame = framed(state, target_tokens=target)
    sources = sources_of(state.units, frame)
    if frame.room <= 0:
        return unchanged(state, Why.NO_ROOM_FOR_PASSAGES)
    order = yield from chosen_order(sources, state, kit, frame)
    view = View(state=state, kit=kit, frame=frame, sources=sources)
    units = view.fitting(order, budget_tokens=target)
    if units is None:
        return unchanged(state, Why.PASSAGES_NOT_SMALLER)
    return Attempt(state=state.having(units), changed=True, reads=reads_of(state.units, frame.kept))


def framed(state: ContextState, *, target_tokens: int) -> Frame:
    """What stays as it is (all that is protected, and the newest cuts), and the tokens left beside it."""
    pieces = cuts(state.units)
    guarded = [cut for cut in pieces if cut.protected]
    free = target_tokens - state.overhead_tokens - sum(cut.tokens for cut in guarded)
    newest = tail(pieces, budget_tokens=int(free * TAIL_SHARE))
    room = free - sum(cut.tokens for cut in newest)
    return Frame(kept=ids_of(guarded) | ids_of(newest), yielding=frozenset(), room=room)


def tail(pieces: Sequence[Cut], *, budget_tokens: int) -> list[Cut]:
    """The newest unprotected cuts that fit the budget whole, without a gap."""
    found: list[Cut] = []
    for cut in reversed(pieces):
        if cut.protected:
            continue
        budget_tokens -= cut.tokens
        if budget_tokens < 0:
            break
        found.append(cut)
    return found


def reads_of(units: Sequence[Unit], kept: Collection[str]) -> tuple[Read, ...]:
    """Every chunk of what is not kept was weighed: all of it was read."""
    return tuple(
        Read(source_id=one, read=len(unit.content), total=len(unit.content))
        for unit in units
        if unit.id not in kept
        for one in unit.sources
    )


def chosen_order(
    sources: Sequence[Source], state: ContextState, kit: Kit, frame: Frame
) -> Generator[Need, Any, list[tuple[int, int]]]:
    """(source, chunk) pairs, the most needed first."""
    places = [(at, number) for at, source in enumerate(sources) for number in range(len(source.chunks))]
    pieces = pieces_of(sources, places, state, kit)
    features = Features([piece.text for piece in pieces], from_tool=[piece.role is Role.TOOL for piece in pieces])
    bonus = yield from bonuses(pieces, features, state)
    prior = priors(pieces)
    leans = leaning(sources, places, state.units)
    labels = [label_tokens(state.units[source.unit_at], frame, kit) for source in sources]
    candidates = [
        Candidate(
            piece.tokens + GAP_TOKENS, own, prior[piece.role] * _favour(piece, taken) * held, at, labels[at], lean
        )
        for piece, own, (at, _), lean, taken, held in zip(
            pieces, bonus, places, leans, features.in_play, _held(sources, places, state.units), strict=True
        )
    ]
    chooser = Chooser(candidates, features, exponent=EXPONENT)
    room = frame.room - margin(frame.room)
    room -= chooser.take(_typed(sources, places, chooser, budget=int(USER_SHARE * room)))
    return [places[one] for one in chooser.choose(room)]


def margin(room: int) -> int:
    return min(MOST_MARGIN, int(MARGIN * room))


def _favour(piece: Piece, taken_up: bool) -> float:
    if piece.role is Role.USER:
        if is_question(piece.text):
            return ASKED
        return STATED if states_a_value(piece.text) else 1.0
    return brevity(piece) * (IN_PLAY if taken_up and piece.role is Role.TOOL else 1.0)


def _held(sources: Sequence[Source], places: Sequence[tuple[int, int]], units: Sequence[Unit]) -> Iterator[float]:
    force = in_force(tuple(units))
    for start in begins(sources, places, units):
        if start in force.changed:
            yield CHANGED
        else:
            yield NAMED if start in force.named else HOLDS if start in force.stated else 1.0


def _typed(sources: Sequence[Source], places: Sequence[tuple[int, int]], chooser: Chooser, *, budget: int) -> list[int]:
    """The chunks of what the user typed, whole messages within the budget.

    They are few of the tokens and name most of what is used later. The newest first; where not all fit, those first
    that say most for what they cost.
    """
    chunks_of: dict[int, list[int]] = {}
    for one, (at, _) in enumerate(places):
        if sources[at].role is sources[at].voice is Role.USER:
            chunks_of.setdefault(at, []).append(one)
    order = sorted(chunks_of, reverse=True)
    costs = {at: chooser.cost(chunks_of[at]) for at in order}
    if sum(costs.values()) > budget:
        order.sort(key=lambda at: -chooser.worth(chunks_of[at]) / costs[at] ** TYPED_EXPONENT)
    found: list[int] = []
    for at in order:
        if costs[at] <= budget:
            budget -= costs[at]
            found += chunks_of[at]
    return found


def pieces_of(
    sources: Sequence[Source], places: Sequence[tuple[int, int]], state: ContextState, kit: Kit
) -> list[Piece]:
    texts = [sources[at].chunks[number].text for at, number in places]
    sizes = kit.counter.count(texts)
    return [
        Piece(text, sources[at].voice, state.units[sources[at].unit_at].id, tokens, len(sources[at].text))
        for (at, _), text, tokens in zip(places, texts, sizes, strict=True)
    ]


def label_tokens(unit: Unit, frame: Frame, kit: Kit) -> int:
    """What a message costs beside its text, once something of it stands."""
    if unit.id in frame.yielding:
        return 0  # it stands in any case
    if is_lines(unit):
        return LINE_TOKENS
    return kit.counter.per_message + unit.image_tokens + (kit.tokens(unit.attached) if unit.attached else 0)
