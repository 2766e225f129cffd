"""Strategy `hybrid`: the strategies before it in the chain once more, in passes, each with tighter parameters.

At most `max_iterations` passes; it ends when the goal is reached or a pass saves less than 1 %. It never
runs itself, so it cannot recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from health.compaction.config import CHAIN_ORDER, ContextConfig
from health.compaction.terms.ports import Attempt, Kit, Read, Strategy, StrategyRun, unchanged
from health.compaction.terms.pressure import targets
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import REGISTRY, strategy
from health.compaction.terms.units import ContextState

NAME = "hybrid"
WORTH_A_PASS = 0.01
# What each pass leaves of every share that is kept, in its first, second and all later passes.
TIGHTER = (0.75, 0.5, 0.25)


@strategy(
    icon="layers",
    label=_("Hybrid"),
    choice=_("All before it again, in turns"),
    message=_("Applying hybrid compression…"),
    pulses=True,
)
def hybrid(state: ContextState, kit: Kit) -> StrategyRun:
    best, passes = state, 0
    reads: tuple[Read, ...] = ()
    for factor in _factors(state.config.hybrid.max_iterations):
        before = best.estimated_tokens
        if at_goal(best):
            break
        attempt: Attempt = yield from _pass(best, kit, factor)
        best, reads, passes = attempt.state, (*reads, *attempt.reads), passes + 1
        if before - best.estimated_tokens < WORTH_A_PASS * before:
            break
    if best is state or best.estimated_tokens >= state.estimated_tokens:
        return unchanged(state, Why.AT_GOAL if at_goal(state) else Why.TIGHTER_SAVED_NOTHING)
    done = Reason(Why.PASSES if passes > 1 else Why.ONE_PASS, {"count": passes})
    return Attempt(state=best, changed=True, why=done, reads=reads)


def _pass(state: ContextState, kit: Kit, factor: float) -> StrategyRun:
    """Each earlier strategy once, on the best state so far; ends early at the goal."""
    best = state
    reads: tuple[Read, ...] = ()
    config = tightened(state.config, factor)
    for earlier in _earlier(state.config.chain_order):
        if at_goal(best):
            break
        attempt: Attempt = yield from earlier(replace(best, config=config), kit)
        if attempt.changed and attempt.state.estimated_tokens < best.estimated_tokens:
            best, reads = replace(attempt.state, config=state.config), (*reads, *attempt.reads)
    return Attempt(state=best, changed=best is not state, reads=reads)


def at_goal(state: ContextState) -> bool:
    return state.estimated_tokens <= targets(state.config, limit=state.limit).goal


def tightened(config: ContextConfig, factor: float) -> ContextConfig:
    """Every share that is kept becomes `factor` of itself. Bounds of coherence stay, plan references stay whole."""

    def less(section: Any, *names: str) -> dict[str, float]:
        return {name: getattr(section, name) * factor for name in names}

    def more(share: float) -> float:
        """What goes, where less of the rest stays."""
        return 1 - (1 - share) * factor

    old, recent, discard = config.summarize_old, config.prioritize_recent, config.discard_low_rel
    chunking, window = config.content_type_chunking, config.sliding_window
    ratios = replace(chunking.compress_ratios, **less(chunking.compress_ratios, "code", "text", "log", "other"))
    length, messages = int(old.summary_length * factor), max(1, int(window.max_messages * factor))
    return replace(
        config,
        summarize_old=replace(old, old_threshold=more(old.old_threshold), summary_length=length),
        prioritize_recent=replace(recent, rel_threshold=more(recent.rel_threshold), **less(recent, "recent_bias")),
        content_type_chunking=replace(chunking, compress_ratios=ratios),
        discard_low_rel=replace(discard, discard_percent=more(discard.discard_percent)),
        sliding_window=replace(window, max_messages=messages),
    )


def _factors(passes: int) -> Iterator[float]:
    return (TIGHTER[min(number, len(TIGHTER) - 1)] for number in range(passes))


def _earlier(chain: tuple[str, ...]) -> list[Strategy]:
    """The known strategies before this one in the chain; the default chain's, where it stands in none."""
    order = chain if NAME in chain else CHAIN_ORDER
    return [REGISTRY[name] for name in order[: order.index(NAME)] if name in REGISTRY]
