"""A run of compaction: the chain of strategies in passes, then recovery if the result does not fit, then the account.
In a pass each strategy works once, on the best state so far. Passes go on while they pay.

`compact` is a pure generator: it yields `Need`s and is sent answers, and yields `Step`s and is sent them back with
their time. Closing it cancels the run. `attempts` guards each strategy.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from health.compaction import recovery
from health.compaction.accounts import applied, failed
from health.compaction.attempts import RunLog, attempted
from health.compaction.config import CHAIN_ORDER, PASSAGES, PASSAGES_AND_LAST_FIVE, RecoveryMode, chain_for
from health.compaction.laws.floor import diagnosis, irreducible
from health.compaction.laws.weave import is_squeezed, ledger_tokens
from health.compaction.reward import coherence_of, rewarded
from health.compaction.shortening import make_room
from health.compaction.strategies import REGISTRY
from health.compaction.strategies.truncate import truncate
from health.compaction.terms.outcome import Code, CompactionOutcome, Status, Step
from health.compaction.terms.ports import Attempt, Kit, Need, Strategy, unchanged
from health.compaction.terms.pressure import at_goal, is_acceptable, targets
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Unit

Stepping = Generator[Need | Step, Any, Attempt]
CHOOSING = frozenset({PASSAGES, PASSAGES_AND_LAST_FIVE})
# These fill the context themselves, or what they take away is a model's choice. What others take away may come back.
FULL_BY_THEMSELVES = CHOOSING | {"prune_with_agent", "fresh_start"}


def pays(before: ContextState, after: ContextState) -> bool:
    """Whether going on with `after` is worth the change: a tenth is gained, or it fits at last."""
    gained = before.estimated_tokens - after.estimated_tokens
    enough = gained >= before.config.min_gain * before.estimated_tokens
    return gained > 0 and (enough or (after.fits and not before.fits))


def joined(first: Attempt, second: Attempt) -> Attempt:
    """The second attempt, with what the first read, changed and shortened by force."""
    return replace(
        second,
        changed=first.changed or second.changed,
        reads=first.reads + second.reads,
        forced=first.forced + second.forced,
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
    """The strategies of a chain by name, and what they are handed.

    Each pass hands them the ledger's entries of its first state, and that state's units as `originals`, unless the
    caller knows older ones.
    """

    chain: tuple[tuple[str, Strategy], ...]
    kit: Kit
    log: RunLog
    originals: tuple[Unit, ...] = ()

    def settled(self, start: ContextState, *, live: bool = True) -> Stepping:
        """The best state that passes reach. Within the limit a pass counts only if it pays, over it in any case.

        The steps of a pass are reported once it counts. With `live` those of the first pass are reported one by one.
        """
        best, number = unchanged(start), 0
        while _goes_on(best.state, number):
            further, steps = yield from self._pass(best.state, live=live and not number)
            paid = pays(best.state, further.state)
            if paid or not best.state.fits:
                yield from self.log.report(*steps)
                best = joined(best, further)
            if not paid:
                break
            number += 1
        return best

    def _pass(
        self, state: ContextState, *, live: bool
    ) -> Generator[Need | Step, Any, tuple[Attempt, tuple[Step, ...]]]:
        """Each strategy once, until the goal is reached; and the steps that are not reported yet.

        Once passages were chosen, an acceptable state is enough: a further strategy would throw them away.
        """
        best = unchanged(replace(state, originals=self.originals or state.units))
        kit = replace(self.kit, entries=self.log.entries(state.units))
        steps: tuple[Step, ...] = ()
        chosen = False
        for name, strategy in self.chain:
            if at_goal(best.state, ledger_tokens(best.state)) or (chosen and is_acceptable(best.state)):
                break
            chosen = chosen or name in CHOOSING
            trying = attempted(strategy, best.state, kit, fills_up=name not in FULL_BY_THEMSELVES)
            attempt: Attempt = yield from self.log.listening(trying)
            step = step_of(name, best.state, attempt)
            if live:
                yield from self.log.report(step)
            else:
                steps = (*steps, step)
            best = joined(best, attempt)
        return best, steps


def _goes_on(state: ContextState, number: int) -> bool:
    """Over the limit three passes are allowed; within it each must gain a tenth, so there are few."""
    if is_acceptable(state):
        return False
    return not number or state.fits or number < state.config.hybrid.max_iterations


Compacting = Generator[Need | Step, Any, CompactionOutcome]

DETECTION, SHORTENING, RECOVERY, SUCCESS = "detection", "shortening", "recovery", "success"
# The chain where an empty one is asked for: what hybrid would repeat.
DEFAULT_CHAIN = tuple(name for name in CHAIN_ORDER if name != "hybrid")
# What recovery tries in turn, each under the phase of its step. The last are needed where nothing must stay.
LAST = ((RECOVERY, recovery.bare), (SHORTENING, make_room))
RECOVERIES: Mapping[RecoveryMode, tuple[tuple[str, Strategy], ...]] = {
    RecoveryMode.FRESH_START: (("handover", recovery.fresh_start), *LAST),
    RecoveryMode.TRUNCATE: (("truncate", truncate), *LAST),
    RecoveryMode.ERROR: (),
}


def compact(
    state: ContextState,
    kit: Kit,
    *,
    chain: Sequence[str] | None = None,
    strategies: Mapping[str, Strategy] | None = None,
    judge: bool = True,
) -> Compacting:
    """One run, to be driven by `runner.run`. The result fits the limit and keeps every law, or it says why not.

    1. At or under the trigger nothing happens. If what cannot be shortened is over the limit, it fails and says why.
    2. If what must stay is too much, it is shortened, each step by name.
    3. The chain runs, and again while that pays: so compacting the result again changes nothing.
    4. If the best does not fit: recovery as configured, and the chain again on what that left.
    5. The account. Without `judge` the coherence stays unknown, which saves its embeddings.
    """
    known = REGISTRY if strategies is None else strategies
    names = tuple(chain_for(state.config) if chain is None else chain) or DEFAULT_CHAIN
    log = RunLog(state.taken_back, state.laid_down)
    found = tuple((name, known[name]) for name in names if name in known)
    passes = Passes(chain=found, kit=kit, log=log, originals=state.originals)
    yield from log.report(step_of(DETECTION, state, unchanged(state)))
    # Strategies read the chain that runs, not the one configured: hybrid repeats what stands before it.
    working = replace(state, config=replace(state.config, chain_order=names))
    outcome = yield from _decided(_untouched(state, kit, names, known), working, passes)
    coherence, delta = None, 0.0
    if outcome.status is Status.APPLIED:
        if judge:
            coherence, delta = yield from log.listening(coherence_of(state, outcome.state))
        done = Attempt(state=outcome.state, changed=True, why=outcome.why)
        yield from log.report(step_of(SUCCESS, state, done))
    warnings = (*outcome.warnings, *log.unread)
    outcome = replace(outcome, coherence=coherence, embedder=", ".join(log.embedders), warnings=warnings)
    return rewarded(outcome, state, log.steps, coherence_delta=delta)


def _untouched(state: ContextState, kit: Kit, names: Sequence[str], known: Mapping[str, Strategy]) -> CompactionOutcome:
    unknown = dict.fromkeys(name for name in names if name not in known)
    return CompactionOutcome(
        status=Status.SKIPPED,
        state=state,
        estimated_tokens_before=state.estimated_tokens,
        estimated_tokens_after=state.estimated_tokens,
        counter=kit.counter.name,
        grade=kit.counter.grade,
        warnings=tuple(Reason(Why.UNKNOWN_STRATEGY, {"name": name}) for name in unknown),
    )


def _decided(
    untouched: CompactionOutcome, state: ContextState, passes: Passes
) -> Generator[Need | Step, Any, CompactionOutcome]:
    """The outcome but for its coherence and reward."""
    if state.estimated_tokens <= targets(state.config, limit=state.limit).trigger:
        return replace(untouched, why=Reason(Why.NOTHING_TO_DO, {"share": state.config.warning_threshold}))
    floor = irreducible(state, passes.kit)
    if floor.tokens > state.limit:
        return failed(untouched, Code.BREAKER_FAILED, diagnosis(floor, limit=state.limit))
    untouched = replace(untouched, ledger=passes.log.entries(state.units))
    # What is not one of the passes is handed the ledger of all that the run began with.
    passes = replace(passes, kit=replace(passes.kit, entries=untouched.ledger))
    begun = yield from _with_room(state, passes)
    settled = yield from passes.settled(begun.state)
    best = joined(begun, (yield from _with_ledger(settled, passes)))
    if best.state.fits:
        no_gain = Reason(Why.NO_GAIN, {"share": state.config.min_gain})
        return applied(untouched, best) if pays(state, best.state) else replace(untouched, why=no_gain)
    rescued = yield from _rescued(best.state, passes)
    if not rescued.state.fits:
        excess = Reason(Why.STILL_OVER, {"tokens": best.state.estimated_tokens, "limit": state.limit})
        return failed(untouched, Code.TOKEN_LIMIT_EXCEEDED, excess)
    again = yield from passes.settled(rescued.state, live=False)
    settled = yield from _with_ledger(again, passes)
    outcome = applied(untouched, joined(joined(best, rescued), settled))
    return replace(outcome, recovered=state.config.recovery_mode)


def _with_room(state: ContextState, passes: Passes) -> Stepping:
    """The state with what must stay short enough; each step is reported."""
    attempt = yield from passes.log.listening(attempted(make_room, state, passes.kit))
    for each in attempt.forced:
        step = Step(phase=SHORTENING, estimated_before=each.before, estimated_after=each.after, changed=True)
        yield from passes.log.report(replace(step, why=each.why))
    return attempt


def _with_ledger(done: Attempt, passes: Passes) -> Stepping:
    """The attempt; where it leaves the ledger too little room for what the user laid down, the filler goes.

    Where passages were chosen last, only missing rules count: what else is worth most is among the passages.
    """
    last = next((step.phase for step in reversed(passes.log.steps) if step.changed), "")
    if not (done.changed and done.state.fits and is_squeezed(done.state, passes.kit, only_rules=last in CHOOSING)):
        return done
    attempt = yield from passes.log.listening(attempted(recovery.room_for_ledger, done.state, passes.kit))
    yield from passes.log.report(step_of(PASSAGES, done.state, attempt))
    return joined(done, attempt)


def _rescued(state: ContextState, passes: Passes) -> Stepping:
    """What recovery makes of a state that does not fit, as configured; the ledger has all that was ever in it."""
    ways = RECOVERIES[state.config.recovery_mode]
    best = unchanged(state, Why.NOT_UNDER)
    if ways:
        yield from passes.log.report(step_of(RECOVERY, state, best))
    for phase, way in ways:
        attempt = yield from passes.log.listening(attempted(way, best.state, passes.kit, recovering=True))
        yield from passes.log.report(step_of(phase, best.state, attempt))
        best = joined(best, attempt)
        if best.state.fits:
            break
    return best
