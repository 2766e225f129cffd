"""The floor: what no compaction can remove. Where it is more than the limit, a diagnosis names its largest parts.

It is every cut with a protected unit, and what is sent besides units. As a last resort texts that are not protected
themselves, and results of the open round, are shortened to head and tail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from health.compaction.config import RecoveryMode
from health.compaction.laws.cuts import cuts
from health.compaction.laws.invariants import is_marked, never_shortened, open_round, protected_ids, waits
from health.compaction.laws.weave import ledger_beside, without_ledger
from health.compaction.terms.ports import Kit
from health.compaction.terms.reasons import Argument, Reason, Why
from health.compaction.terms.units import INSTRUCTING, ContextState, Kind, Priority, Role, Unit, total
from health.compaction.trimming.clamp import shortened

OPENING = "Resuming from overflow: "

NAMED = 3
# Nobody is to blame for less of the whole.
LEAST_SHARE = 0.02
# Where nothing at all stands, so many tokens are enough to say so.
LEAST_ROOM = 64

ADVICE: Mapping[Why, Why] = {
    Why.P1: Why.LOWER_PRIORITY,
    Why.PINNED: Why.UNPIN,
    Why.SYSTEM_PROMPT: Why.SHORTEN_SYSTEM_PROMPT,
    Why.OVERHEAD: Why.FEWER_TOOLS,
    Why.OPEN_ROUND: Why.ASK_FOR_LESS,
    Why.USERS_WORDS: Why.GIVE_A_FILE,
    Why.HELD_ROUND: Why.UNPIN_ROUNDS,
}


@dataclass(frozen=True, kw_only=True)
class Contributor:
    """A part of the floor. `why` it must stay is a key of ADVICE; `helped`: that advice is of use for it."""

    why: Why
    tokens: int
    unit_id: str = ""
    helped: bool = True

    def as_reason(self) -> Reason:
        """Such as "pinned (15) ≈2,000 tokens"."""
        said: dict[str, Argument] = {"why": Reason(self.why), "tokens": self.tokens}
        return Reason(Why.SHARE_OF, {**said, "name": self.unit_id}) if self.unit_id else Reason(Why.SHARE, said)


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The fewest tokens that a state can come to, and what they are made of, the largest first."""

    tokens: int
    shares: tuple[Contributor, ...]

    @property
    def largest(self) -> tuple[Contributor, ...]:
        """Small ones of a kind count together: two hundred pins are a lot, each of them is little."""
        least = LEAST_SHARE * self.tokens
        together = Counter[tuple[Why, bool]]()
        for share in self.shares:
            together[share.why, share.helped] += share.tokens if share.tokens <= least else 0
        crowds = (Contributor(why=why, tokens=tokens, helped=helped) for (why, helped), tokens in together.items())
        named = (share for share in (*self.shares, *crowds) if share.tokens > least)
        return tuple(sorted(named, key=lambda share: -share.tokens)[:NAMED])


def standing(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """What stays in every case: the cuts with something protected in them, whole; but a handover can be retold.

    Where nothing is protected the last cut stays: a context of nothing helps nobody.
    """
    all_cuts = cuts(units)
    kept = [cut for cut in all_cuts if cut.protected and not is_handover(cut.units[0])] or all_cuts[-1:]
    return tuple(unit for cut in kept for unit in cut.units)


def can_give_way(units: Sequence[Unit]) -> frozenset[str]:
    """Of what stays, the texts that may be shortened when nothing else helps."""
    marked = {unit.id for unit in units if unit.pinned or unit.priority is Priority.P1}
    open_results = {unit.id for unit in open_round(units) if unit.role is Role.TOOL}
    return frozenset({unit.id for unit in units} - protected_ids(units) | (open_results - marked))


def oversized(state: ContextState) -> dict[str, Reason]:
    """The results of the open round that do not fit beside what must stay, each even alone: what is said of them."""
    kept, marked = standing(state.units), {unit.id for unit in state.units if is_marked(unit)}
    results = [unit for unit in open_round(state.units) if unit.role is Role.TOOL and unit.id not in marked]
    room = state.limit - state.overhead_tokens - total(kept) + total(results)
    return {
        unit.id: Reason(Why.RESULT_TOO_LARGE, {"tokens": total([unit]), "room": max(0, room)})
        for unit in results
        if total([unit]) > room
    }


def must_stay(state: ContextState, kit: Kit) -> int:
    """The tokens of what stands in every case, and of the ledger beside it, in place of an earlier one."""
    plain = without_ledger(state)
    kept = standing(plain.units)
    return state.overhead_tokens - state.ledger_tokens + total(kept) + ledger_beside(kept, plain, kit)


def least_of(state: ContextState) -> Floor:
    """What not even the last resort shortens: the fewest tokens of which there is a result."""
    never = never_shortened(state.units)
    shares = [_overhead(state, state.overhead_tokens - state.ledger_tokens)]
    shares += [
        Contributor(why=_why(unit, is_open=False), tokens=_least_tokens(unit, state), unit_id=unit.id)
        for unit in state.units
        if unit.id in never
    ]
    return _floor(shares, beside=state.answer_tokens + (0 if never or not state.units else LEAST_ROOM))


def irreducible(state: ContextState, kit: Kit) -> Floor:
    """What must stay in any case: where no recovery is wished for, all that is protected."""
    is_strict = state.config.recovery_mode is RecoveryMode.ERROR
    return floor_of(state, kit) if is_strict else least_of(without_ledger(state))


def _least_tokens(unit: Unit, state: ContextState) -> int:
    """All of it, but of a message that is worked on: a little is enough to know what it was, beside its images."""
    is_whole = is_marked(unit) or waits(state.units)
    return total([unit]) if is_whole else min(total([unit]), LEAST_ROOM + unit.image_tokens)


def floor_of(state: ContextState, kit: Kit, *, is_whole: bool = False) -> Floor:
    """What no strategy removes, but for a last resort on results of the open round; `is_whole`: without that."""
    gives_way: frozenset[str] = frozenset() if is_whole else can_give_way(state.units)
    open_ids = {unit.id for unit in open_round(state.units)}
    shares = [_overhead(state, state.overhead_tokens)]
    for unit in standing(state.units):
        least = shortened(unit, max_tokens=0, kit=kit) if unit.id in gives_way else unit
        why = _why(unit, is_open=unit.id in open_ids)
        helped = why is not Why.OPEN_ROUND or unit.role is Role.TOOL
        shares.append(Contributor(why=why, tokens=total([least]), unit_id=unit.id, helped=helped))
    return _floor(shares, beside=state.answer_tokens)


def _floor(shares: Sequence[Contributor], *, beside: int) -> Floor:
    tokens = sum(share.tokens for share in shares) + beside
    return Floor(tokens=tokens, shares=tuple(sorted(shares, key=lambda share: -share.tokens)))


def _overhead(state: ContextState, tokens: int) -> Contributor:
    """What is kept for the answer is nobody's fault."""
    return Contributor(why=Why.OVERHEAD, tokens=tokens - state.answer_tokens)


def diagnosis(floor: Floor, *, limit: int, named: Argument | None = None) -> Reason:
    """Which parts of the floor are largest, and what a person can do. `named`: the limit as the sentence names it."""
    first = sum(share.tokens for share in floor.shares if share.why is Why.P1)
    culprit, needed = (Why.P1_ALONE, first) if first > limit else (Why.CANNOT_FREE_MORE, floor.tokens)
    shown = limit if named is None else named
    return Reason(culprit, {"needed": needed, "limit": shown, "shares": shares(floor), "ways": ways(floor)})


def shares(floor: Floor) -> tuple[Reason, ...]:
    """The largest contributors, each with its size: the argument `shares` of a reason."""
    return tuple(share.as_reason() for share in floor.largest)


def ways(floor: Floor) -> tuple[Reason, ...]:
    """What helps against the largest: the argument `ways` of a reason."""
    return tuple(Reason(way) for way in dict.fromkeys(ADVICE[share.why] for share in floor.largest if share.helped))


def _why(unit: Unit, *, is_open: bool) -> Why:
    if unit.role in INSTRUCTING:
        return Why.SYSTEM_PROMPT
    if unit.priority is Priority.P1:
        return Why.P1
    if unit.pinned:
        return Why.PINNED
    if is_open:
        return Why.OPEN_ROUND
    return Why.USERS_WORDS if unit.role is Role.USER else Why.HELD_ROUND


def is_handover(unit: Unit) -> bool:
    return unit.kind is Kind.SUMMARY and unit.content.startswith(OPENING)
