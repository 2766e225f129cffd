"""Strategy `sliding_window`: a window of so many messages, the newest always, older ones by importance.

Messages are counted, not tokens; rounds stay whole, so a round that reaches into the newest stays with
them and one that does not fit goes. System prompts and what compaction wrote are no messages. Prompts of the
driver go first: at most the newest is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from health.compaction.laws.cuts import Cut, ceil_share, cuts, ids_of
from health.compaction.reading.importance import importances
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import INSTRUCTING, WRITTEN, ContextState
from health.compaction.trimming import placeholders


@strategy(
    icon="layers",
    label=_("Sliding window"),
    choice=_("Keep a window of messages"),
    message=_("Keeping a window of recent messages…"),
)
def sliding_window(state: ContextState, kit: Kit) -> StrategyRun:
    yield from ()
    config = state.config.sliding_window
    found = cuts(state.units)
    stale = _stale_prompts(found)
    current = [cut for cut in found if cut.start not in stale]
    if not stale and _count(current) <= config.max_messages:
        return unchanged(state, Reason(Why.FEW_MESSAGES, {"count": config.max_messages}))
    stays, others = _parted(current, newest=ceil_share(config.max_messages, config.recent_share))
    chosen = _most_important(others, config.max_messages - _count(stays), importances(state.units))
    gone = ids_of(found) - ids_of(stays) - ids_of(chosen)
    units = placeholders.with_one(state, gone, kit)
    if units == state.units:
        return unchanged(state, Why.LESS_THAN_PLACEHOLDER)
    return Attempt(state=state.with_units(units), changed=True)


def _messages(cut: Cut) -> int:
    return sum(1 for unit in cut.units if unit.role not in INSTRUCTING and unit.kind not in WRITTEN)


def _count(found: Iterable[Cut]) -> int:
    return sum(map(_messages, found))


def _stale_prompts(found: Sequence[Cut]) -> frozenset[int]:
    """Where the driver's own prompts stand, but for the newest and for what is protected."""
    prompts = [cut for cut in found if all(unit.inserted for unit in cut.units)]
    return frozenset(cut.start for cut in prompts[:-1] if not cut.protected)


def _parted(current: Sequence[Cut], *, newest: int) -> tuple[list[Cut], list[Cut]]:
    """What stays in any case, and the rest, both newest first: a cut that reaches into the newest is one of them."""
    stays: list[Cut] = []
    others: list[Cut] = []
    seen = 0
    for cut in reversed(current):
        messages = _messages(cut)
        must = cut.protected or not messages or seen < newest
        (stays if must else others).append(cut)
        seen += messages
    return stays, others


def _most_important(newest_first: Sequence[Cut], room: int, score: dict[str, float]) -> list[Cut]:
    """Those of most importance that fit; of two alike the newer. A round is as important as its best message.

    What is tagged P3 or P2 comes last.
    """
    chosen: list[Cut] = []
    for cut in sorted(newest_first, key=lambda cut: (-cut.turn, -max(score[unit.id] for unit in cut.units))):
        if _messages(cut) <= room:
            chosen.append(cut)
            room -= _messages(cut)
    return chosen
