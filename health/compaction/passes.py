"""The chain as passes: each strategy once, on the best state so far, and all of them again while that pays.

A pass depends on nothing but the state it begins with. A run ends with a pass that did not pay and was not taken:
so a second run, which begins with that pass, takes nothing either. That is why compacting again changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from health.compaction.attempts import Journal, tried
from health.compaction.config import PASSAGES, PASSAGES_AND_LAST_FIVE
from health.compaction.laws.weave import ledger_tokens
from health.compaction.terms.outcome import Step
from health.compaction.terms.ports import Attempt, Kit, Need, Strategy, unchanged
from health.compaction.terms.pressure import at_goal, is_acceptable
from health.compaction.terms.units import ContextState, Unit

Stepping = Generator[Need | Step, Any, Attempt]
CHOOSING = frozenset({PASSAGES, PASSAGES_AND_LAST_FIVE})
# What these take away is their own choice, or they fill the context themselves. Of all others the best comes back.
FULL_BY_THEMSELVES = CHOOSING | {"prune_with_agent", "fresh_start"}


def pays(before: ContextState, after: ContextState) -> bool:
    """Whether going on with `after` is worth the change: a tenth is gained, or it fits at last."""
    gained = before.estimated_tokens - after.estimated_tokens
    enough = gained >= before.config.min_gain * before.estimated_tokens
    return gained > 0 and (enough or (after.fits and not before.fits))


def joined(first: Attempt, second: Attempt) -> Attempt:
    """Both as one, with what either read, and what gave way to either."""
    return replace(
        second,
        changed=first.changed or second.changed,
        reads=first.reads + second.reads,
        gave_way=first.gave_way + second.gave_way,
    )


def step_of(phase: str, before: ContextState, attempt: Attempt) -> Step:
    return Step(
        phase=phase,
        estimated_before=before.estimated_tokens,
        estimated_after=attempt.state.estimated_tokens,
        changed=attempt.changed,
        why=attempt.why,
    )


@dataclass(frozen=True, kw_only=True)
class Passes:
    """A chain by name, and what its strategies are handed.

    The ledger's entries, and the `originals` unless a caller knows older ones, are those of each pass's first state.
    """

    chain: tuple[tuple[str, Strategy], ...]
    kit: Kit
    journal: Journal
    originals: tuple[Unit, ...] = ()

    def settled(self, start: ContextState, *, live: bool = True) -> Stepping:
        """The best that passes make of a state: within the limit only what pays is taken, over it whatever shrinks.

        Steps of a pass are reported when it is taken; those of the first at once, if this is to be seen live.
        """
        best, number = unchanged(start), 0
        while _goes_on(best.state, number):
            further, steps = yield from self._pass(best.state, live=live and not number)
            paid = pays(best.state, further.state)
            if paid or not best.state.fits:
                yield from self.journal.report(*steps)
                best = joined(best, further)
            if not paid:
                break
            number += 1
        return best

    def _pass(
        self, state: ContextState, *, live: bool
    ) -> Generator[Need | Step, Any, tuple[Attempt, tuple[Step, ...]]]:
        """Each strategy once, until the goal, and the steps that were not yet reported.

        Behind a choice of passages none goes on from what is acceptable: it would throw away what was chosen.
        """
        best = unchanged(replace(state, originals=self.originals or state.units))
        kit = replace(self.kit, entries=self.journal.entries(state.units))
        steps: tuple[Step, ...] = ()
        chosen = False
        for name, strategy in self.chain:
            if at_goal(best.state, ledger_tokens(best.state)) or (chosen and is_acceptable(best.state)):
                break
            chosen = chosen or name in CHOOSING
            trying = tried(strategy, best.state, kit, fills_up=name not in FULL_BY_THEMSELVES)
            attempt: Attempt = yield from self.journal.listening(trying)
            step = step_of(name, best.state, attempt)
            if live:
                yield from self.journal.report(step)
            else:
                steps = (*steps, step)
            best = joined(best, attempt)
        return best, steps


def _goes_on(state: ContextState, number: int) -> bool:
    """Over the limit three passes are allowed; within it each must gain a tenth, so there are few."""
    if is_acceptable(state):
        return False
    return not number or state.fits or number < state.config.hybrid.max_iterations
