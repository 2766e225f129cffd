"""Recovery, when the chain's best result does not fit: what must stay is kept, the rest goes to the archive.

`fresh_start` writes a handover for the rest, `truncate` a placeholder, `bare` nothing. `room_for_ledger` comes where
all fits except what the user laid down. What must stay was shortened before, if it was too much (`shortening`).
"""

from __future__ import annotations

from collections.abc import Sequence

from health.compaction.choosing import summaries
from health.compaction.laws.floor import OPENING, standing
from health.compaction.laws.weave import ledger_beside
from health.compaction.strategies.select_passages import passages_within
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.pressure import targets, tokens
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Kind, Priority, Unit, total, written_for

# A shorter handover would hold its frame and nothing else.
LEAST_HANDOVER = 80


def fresh_start(state: ContextState, kit: Kit) -> StrategyRun:
    """What must stay, and one handover for all else. An earlier handover is told again in the new one.

    Where all that is gone is shorter than a handover of it, there is none.
    """
    kept = standing(state.units)
    ids = {unit.id for unit in kept}
    gone = tuple(unit for unit in state.units if unit.id not in ids)
    room = _room_for_handover(kept, state, kit)
    if not gone or room < LEAST_HANDOVER:
        return Attempt(
            state=state.with_units(kept), changed=True, why=Reason(Why.NO_ROOM_FOR_HANDOVER) if gone else None
        )
    written: Attempt = yield from handover(gone, state, kit, budget_tokens=min(room, total(gone) - 1))
    if total(written.state.units) >= total(gone):
        return Attempt(state=state.with_units(kept), changed=True)
    units = _placed(written.state.units, kept, state.units)
    return Attempt(state=state.with_units(units), changed=True, why=written.why, reads=written.reads)


def _room_for_handover(kept: Sequence[Unit], state: ContextState, kit: Kit) -> int:
    """As configured, and no more than is acceptable: a fresh start above its own trigger would be compacted at once.

    Where what must stay leaves no room up to there, what the limit leaves.
    """
    config, limit = state.config, state.room or state.limit
    # Who resets in any case has no trigger; what is acceptable is then what the configuration says.
    accept = targets(config, limit=limit).accept or tokens(config.accept, limit)
    beside = state.overhead_tokens + total(kept) + ledger_beside(kept, state, kit)
    room = accept - beside
    return min(config.handover_tokens, room if room >= LEAST_HANDOVER else limit - beside)


def bare(state: ContextState, kit: Kit) -> StrategyRun:
    """Nothing but what must stay: no helper's failure can prevent this one."""
    yield from ()
    units = standing(state.units)
    if units == state.units:
        return unchanged(state, Why.NOTHING_MORE)
    return Attempt(state=state.with_units(units), changed=True, why=Reason(Why.ONLY_WHAT_MUST_STAY))


def room_for_ledger(state: ContextState, kit: Kit) -> StrategyRun:
    """Where filler stands that took the room of what the user laid down: passages beside the whole ledger, else only
    what must stay."""
    target = state.limit + state.ledger_tokens - tokens(state.config.ledger_share, state.limit)
    attempt = yield from passages_within(target, state, kit)
    return attempt if attempt.changed else (yield from bare(state, kit))


def _placed(written: Sequence[Unit], kept: Sequence[Unit], before: Sequence[Unit]) -> tuple[Unit, ...]:
    """The handover after all that was said before the last message it stands for."""
    ids = {unit.id for unit in kept}
    last = max(at for at, unit in enumerate(before) if unit.id not in ids)
    earlier = sum(unit.id in ids for unit in before[:last])
    return (*kept[:earlier], *written, *kept[earlier:])


# --- The handover ---
FRAME = OPENING + "{summary}. Continue {task}."
ARCHIVED = "{count:,} earlier messages ({tokens:,} tokens) are left out; all of them are in the archive"
TASK_CHARS = 100


def handover(gone: Sequence[Unit], state: ContextState, kit: Kit, *, budget_tokens: int) -> StrategyRun:
    """The handover for these, counted, as the only unit of a state. Raises nothing where the summary is empty."""
    archived = ARCHIVED.format(count=len(gone), tokens=total(gone))
    frame = kit.tokens(_framed(f"\n{archived}", state.task)) + kit.counter.per_message
    summary = yield from summaries.summary(gone, max_tokens=budget_tokens - frame, kit=kit, focus=state.task)
    content = _framed(f"{summary.text}\n{archived}", state.task)
    unit = written_for(gone, Kind.SUMMARY, "handover", content, priority=Priority.P1)
    return Attempt(state=state.with_units(kit.counted([unit])), changed=True, why=summary.why, reads=summary.reads)


def _framed(summary: str, task: str) -> str:
    named = " ".join(task.split())
    if len(named) > TASK_CHARS:
        named = f"{named[:TASK_CHARS].rstrip()}…"
    return FRAME.format(summary=summary.strip(" .\n"), task=f"task {named.rstrip('.')}" if named else "the task")
