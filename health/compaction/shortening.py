"""Shortens what must stay where it is more than the room, so that there is always a result.

The reductions of `STEPS` come in order. Each takes no more than is needed, and only if those before it did not suffice
at their utmost. Every message that they touch is named. Instructions are never touched, nor is the newest typed
message, unless an agent is at work on one that leaves no room for that work.
Older rounds and an earlier handover need not stay: recovery writes what they said into a new handover.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from health.compaction.config import RecoveryMode
from health.compaction.laws.floor import LEAST_ROOM, must_stay, oversized, standing
from health.compaction.laws.invariants import is_marked, never_shortened, requests, waits
from health.compaction.laws.weave import without_ledger
from health.compaction.reading.digest import GAP, NOTICE, is_digest
from health.compaction.reading.importance import is_ui_tool
from health.compaction.round_digest import DIGEST_TOKENS, HEAD_NOTE, with_digests
from health.compaction.strategies.trim_payloads import trimmed
from health.compaction.terms.ports import Attempt, ForcedShortening, Kit, StrategyRun, unchanged
from health.compaction.terms.pressure import targets, tokens
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import (
    STATES_REMEMBERED,
    WRITTEN,
    ByIdentity,
    ContextState,
    Kind,
    Priority,
    Role,
    Unit,
    rounds,
    synthetic_id,
    tools_by_result,
    total,
    written_for,
)
from health.compaction.trimming.clamp import evened, shortened
from health.compaction.trimming.payloads import is_json
from health.compaction.trimming.rewording import in_play, reworded

Units = tuple[Unit, ...]
Size = Callable[[ContextState, Kit], int]
Take = Callable[[ContextState, int, Kit], Units]

# The most that the first request may take of what instructions, tools and the newest typed message leave.
FIRST_REQUEST_SHARE = 0.45
# The most that the message that is worked on may take of the room, if it does not fit.
NEWEST_SHARE = 0.9
# The shorter a message, the more of it the ledger carries, and the less room is left: one try may not be enough.
TRIES = 4
# If nothing else helps, a text is cut to its beginning, of so many tokens.
HEAD_TOKENS = 12
cut_to_beginnings = partial(evened, least=HEAD_TOKENS, note=HEAD_NOTE, head_share=1.0)


class Reduction(NamedTuple):
    """`size` must not be above the limit; `take` returns the units with so many tokens less, as far as possible."""

    why: Why
    size: Size
    take: Take


def make_room(state: ContextState, kit: Kit) -> StrategyRun:
    """A strategy: the state with what must stay short enough, and the messages that were touched."""
    yield from ()
    units, forced = state, list[ForcedShortening]()
    while further := _further(units, kit):
        units = further[-1][0]
        forced += [one for _, one in further]
    if not forced:
        return unchanged(state, Why.EVERYTHING_FITS)
    return Attempt(state=units, changed=True, why=forced[0].why, forced=tuple(forced))


def _further(state: ContextState, kit: Kit) -> list[tuple[ContextState, ForcedShortening]]:
    """The table once: each reduction that was needed, and the state after it. Another message may be the first request
    then, so the table is gone through again."""
    found: list[tuple[ContextState, ForcedShortening]] = []
    steps = ONLY_RESULTS if state.config.recovery_mode is RecoveryMode.ERROR else STEPS
    for step in () if _suffices(state, kit) else steps:
        less = taken(step, state, kit)
        if less.estimated_tokens < state.estimated_tokens:
            found.append((less, _forced(step.why, state, less)))
            state = less
    return found


def _suffices(state: ContextState, kit: Kit) -> bool:
    """Does what must stay fit beside the largest possible ledger? Then no reduction is measured."""
    most = _bare(without_ledger(state), kit) + tokens(state.config.ledger_share, state.limit)
    return _over_share(state) <= 0 and max(most, _bare(state, kit), _newest_alone(state, kit)) <= state.limit


def taken(step: Reduction, state: ContextState, kit: Kit) -> ContextState:
    """The state after this reduction, if it needs one: at the first goal within reach, else as short as possible."""
    less = state
    if _measured(step.size, ByIdentity(state), ByIdentity(kit)) <= state.limit:
        return less
    for size, goal in dict.fromkeys(_goals(step, state)):
        excess = _measured(size, ByIdentity(state), ByIdentity(kit)) - goal
        for _ in range(TRIES):
            before, less = less, state.with_units(step.take(state, excess, kit))
            if less.units == before.units:
                break
            over = _measured(size, ByIdentity(less), ByIdentity(kit)) - goal
            if over <= 0:
                return less
            excess += over
    return less


@lru_cache(maxsize=STATES_REMEMBERED)
def _measured(size: Size, state: ByIdentity[ContextState], kit: ByIdentity[Kit]) -> int:
    """Several steps ask for the same size of one state: of the largest ledger that it may need, which takes longest."""
    return size(state.it, kit.it)


def _goals(step: Reduction, state: ContextState) -> Iterator[tuple[Size, int]]:
    """Sizes and the tokens that they are to come to: what is acceptable, else the limit. A reduction that need not
    leave room for a ledger tries to leave it first."""
    if step.size is _newest_alone:
        yield _newest_alone, state.limit
        return
    yield must_stay, targets(state.config, limit=state.limit).accept
    yield must_stay, state.limit
    if step.size is _bare:
        yield _bare, state.limit


def _forced(why: Why, before: ContextState, after: ContextState) -> ForcedShortening:
    """The reduction as a reason that names the messages it touched, and their tokens before and after."""
    now, known = {unit.id: unit for unit in after.units}, {unit.id for unit in before.units}
    touched = [unit for unit in before.units if now.get(unit.id) != unit]
    left = [now[unit.id] for unit in touched if unit.id in now]
    left += [unit for unit in after.units if unit.id not in known]
    ids = ", ".join(unit.id for unit in touched)
    return ForcedShortening(
        why=Reason(why, {"name": ids, "before": total(touched), "after": total(left)}),
        ids=frozenset(unit.id for unit in touched),
        before=before.estimated_tokens,
        after=after.estimated_tokens,
    )


# --- Sizes, in tokens ---


def _bare(state: ContextState, kit: Kit) -> int:
    """What must stay without a ledger: that takes what is left."""
    return state.overhead_tokens - state.ledger_tokens + total(standing(state.units))


def _newest_alone(state: ContextState, kit: Kit) -> int:
    """Instructions, tools and the message that is worked on; nothing where there is none."""
    newest = _worked_on(state)
    kept = never_shortened(state.units)
    beside = state.overhead_tokens - state.ledger_tokens + LEAST_ROOM
    return beside + total(unit for unit in state.units if unit.id in kept) if newest else 0


def _with_first(state: ContextState, kit: Kit) -> int:
    """What must stay, or what passes the limit by as much as the first request passes its share."""
    return max(_measured(must_stay, ByIdentity(state), ByIdentity(kit)), state.limit + _over_share(state))


def _over_share(state: ContextState) -> int:
    """By how much the first request passes its share; less than nothing where it does not."""
    kept = never_shortened(state.units)
    besides = state.overhead_tokens - state.ledger_tokens
    room = state.limit - besides - total(unit for unit in state.units if unit.id in kept)
    return total(_firsts(state)) - int(FIRST_REQUEST_SHARE * max(0, room))


# --- Which units are shortened ---


def _firsts(state: ContextState) -> Units:
    """The first request, unless it is the newest message or marked."""
    return tuple(unit for unit in requests(state.units)[:-1] if not is_marked(unit))


def _worked_on(state: ContextState) -> Units:
    """The newest message, once somebody took it up; unless it is marked."""
    return tuple(unit for unit in requests(state.units)[-1:] if not (is_marked(unit) or waits(state.units)))


def _texts(state: ContextState) -> Units:
    """What else stands unmarked and is no result, nor a digest of some: the agent's texts."""
    first = _ids(_firsts(state))
    texts = (unit for unit in _unmarked(state) if unit.role is not Role.TOOL and not is_digest(unit))
    return tuple(unit for unit in texts if unit.id not in first)


def _may_be_shortened(state: ContextState) -> Iterator[Unit]:
    """What must stay, except what is never shortened."""
    never = never_shortened(state.units)
    return (unit for unit in standing(state.units) if unit.id not in never)


def _marked(state: ContextState) -> Units:
    return tuple(unit for unit in _may_be_shortened(state) if is_marked(unit))


def _unmarked(state: ContextState) -> Units:
    return tuple(unit for unit in _may_be_shortened(state) if not is_marked(unit))


def _pieces(state: ContextState) -> Iterator[Units]:
    """What stands and may go, each round as a whole."""
    stands = {unit.id for unit in standing(state.units)}
    never = never_shortened(state.units)
    for piece in rounds(state.units):
        ids = {unit.id for unit in piece}
        if ids <= stands and never.isdisjoint(ids):
            yield piece


def _is_free(piece: Units) -> bool:
    return not any(is_marked(unit) for unit in piece)


# --- How they are shortened ---


def _shorter(state: ContextState, excess: int, kit: Kit, *, who: Callable[[ContextState], Units]) -> Units:
    """The largest of them to head and tail, evenly."""
    return evened(state.units, may=_ids(who(state)), excess=excess, kit=kit)


def _shorter_first(state: ContextState, excess: int, kit: Kit) -> Units:
    """The first request to its share at most."""
    return _shorter(state, max(excess, _over_share(state)), kit, who=_firsts)


def _shorter_newest(state: ContextState, excess: int, kit: Kit) -> Units:
    """The message that is worked on to its share: what was done for it needs room too."""
    own = total(_worked_on(state))
    room = state.limit - _newest_alone(state, kit) + own
    return _shorter(state, max(excess, own - int(NEWEST_SHARE * room)), kit, who=_worked_on)


def _head_of_newest(state: ContextState, excess: int, kit: Kit) -> Units:
    return cut_to_beginnings(state.units, may=_ids(_worked_on(state)), excess=excess, kit=kit)


def _shorter_results(state: ContextState, excess: int, kit: Kit) -> Units:
    """The largest results by what they are, as many as it takes; evenly where these still do not fit. JSON stays JSON.

    One that could not fit even alone says so, but for trees of elements, which say it themselves.
    """
    found = (unit for unit in _unmarked(state) if unit.role is Role.TOOL)
    results, said = sorted(found, key=lambda unit: -total([unit])), oversized(state)
    tools, keep = tools_by_result(state.units), in_play(state)
    contents: dict[str, str] = {}
    short = state
    for unit in (one for one in results if one.id not in said or is_ui_tool(tools.get(one.id, ""))):
        contents[unit.id] = trimmed(unit, tools.get(unit.id, ""), keep, state)
        attempt = reworded(contents, state, kit)
        short = attempt.state if attempt else state
        if (spare := _gained(state, short) - excess) >= 0:
            is_tree = is_ui_tool(tools.get(unit.id, ""))
            return short.units if is_tree else _with_spare(short.units, unit, spare, kit)
    if must_stay(short, kit) <= state.limit < must_stay(state, kit):
        return short.units
    left = excess - _gained(state, short)
    return evened(short.units, may=_ids(results), excess=left, kit=kit, said=said)


def _with_spare(short: Units, unit: Unit, spare: int, kit: Kit) -> Units:
    """The short units, of which the one that is JSON has as many more of its elements as the spare tokens hold."""
    if not is_json(unit.content):
        return short
    most = spare + next(total([one]) for one in short if one.id == unit.id)
    return tuple(shortened(unit, max_tokens=most, kit=kit) if one.id == unit.id else one for one in short)


def _digested(state: ContextState, excess: int, kit: Kit) -> Units:
    """Unmarked rounds as digests, where these are smaller: calls and results leave together."""
    pieces = [piece for piece in _pieces(state) if piece[0].calls and _is_free(piece)]
    room = sum(map(total, pieces)) - excess
    most = max(DIGEST_TOKENS, room // max(1, len(pieces)))
    return with_digests(state.units, pieces, most, kit)


def _heads(state: ContextState, excess: int, kit: Kit) -> Units:
    """Short heads of what stands unmarked, but for results, which would be JSON no longer."""
    may = {unit.id for unit in _unmarked(state) if unit.role is not Role.TOOL and unit.kind not in WRITTEN}
    short = cut_to_beginnings(state.units, may=may, excess=excess, kit=kit)
    known = {unit.id: unit for unit in state.units}
    return kit.counted(
        unit if unit.content or not known[unit.id].content else unit.saying(GAP.strip()) for unit in short
    )


def _gone(state: ContextState, excess: int, kit: Kit, *, least: int) -> Units:
    """Without unmarked pieces larger than `least`, the largest first, the open round last; never nothing at all."""
    pieces = [piece for piece in _pieces(state) if _is_free(piece) and total(piece) > least]
    last = state.units[-1].id if state.units else ""
    pieces.sort(key=lambda piece: (piece[-1].id == last and piece[0].round_id is not None, -total(piece)))
    units = _without(state.units, _enough(pieces, excess))
    return units or kit.counted([_notice(state.units)])


def _without_marked(state: ContextState, excess: int, kit: Kit) -> Units:
    """Without the oldest of the lowest mark; of an open round a digest stays."""
    pieces = [piece for piece in _pieces(state) if not _is_free(piece)]
    going = _enough(sorted(pieces, key=_rank), excess)
    opened = [piece for piece in going if piece[-1] == state.units[-1] and piece[0].calls]
    units = with_digests(state.units, opened, DIGEST_TOKENS, kit)
    return _without(units, going)


def _rank(piece: Units) -> tuple[int, bool]:
    """The lower, the sooner it goes: P3 before P2 before P1, and what is pinned too after what is not."""
    ranks = [(-(unit.priority or Priority.P2), unit.pinned) for unit in piece if is_marked(unit)]
    return max(ranks)


def _enough(pieces: Sequence[Units], excess: int) -> list[Units]:
    """The first of them that hold so many tokens."""
    found: list[Units] = []
    for piece in pieces:
        if excess <= 0:
            break
        found.append(piece)
        excess -= total(piece)
    return found


def _notice(units: Sequence[Unit]) -> Unit:
    sources = tuple(unit.id for unit in units)
    own_id = synthetic_id("notice", sources)
    return written_for(units, Kind.PLACEHOLDER, "notice", NOTICE, id=own_id, source_ids=sources)


def _without(units: Sequence[Unit], pieces: Sequence[Units]) -> Units:
    gone = {unit.id for piece in pieces for unit in piece}
    return tuple(unit for unit in units if unit.id not in gone)


def _gained(before: ContextState, after: ContextState) -> int:
    return before.estimated_tokens - after.estimated_tokens


def _ids(units: Collection[Unit]) -> frozenset[str]:
    return frozenset(unit.id for unit in units)


STEPS = (
    Reduction(Why.NEWEST_SHORTENED, _newest_alone, _shorter_newest),
    Reduction(Why.NEWEST_SHORTENED, _newest_alone, _head_of_newest),
    Reduction(Why.FIRST_REQUEST_SHORTENED, _with_first, _shorter_first),
    Reduction(Why.TEXTS_SHORTENED, must_stay, partial(_shorter, who=_texts)),
    Reduction(Why.RESULTS_SHORTENED, must_stay, _shorter_results),
    Reduction(Why.ROUND_DIGESTED, _bare, _digested),
    Reduction(Why.HEADS_LEFT, _bare, _heads),
    Reduction(Why.GONE_ENTIRELY, _bare, partial(_gone, least=LEAST_ROOM)),
    Reduction(Why.MARKED_SHORTENED, _bare, partial(_shorter, who=_marked)),
    Reduction(Why.MARKED_LEFT_OUT, _bare, _without_marked),
    Reduction(Why.GONE_ENTIRELY, _bare, partial(_gone, least=0)),
)
# Where a recovery is not wished for.
ONLY_RESULTS = (Reduction(Why.RESULTS_SHORTENED, must_stay, _shorter_results),)
