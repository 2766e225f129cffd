"""What holds for every history, strategy, chain and limit: the laws, the limit, and that again changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.compaction.compact import compact
from health.compaction.config import RecoveryMode
from health.compaction.laws.floor import floor_of, least_of
from health.compaction.laws.invariants import broken, never_shortened, protected_ids, waits
from health.compaction.laws.weave import without_ledger
from health.compaction.runner import run
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import Code, CompactionOutcome, Status
from health.compaction.terms.pressure import targets
from health.compaction.terms.units import ContextState
from tests.health.compaction.histories import KIT, states

NAMES = sorted(REGISTRY)
chains = st.one_of(
    st.sampled_from(NAMES).map(lambda name: (name,)),  # every strategy alone
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5).map(tuple),
    st.none(),  # the configured one
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(states(), chains)
def test_every_law_holds_whatever_is_compacted_by_whatever_chain(
    state: ContextState, chain: Sequence[str] | None
) -> None:
    outcome = run(compact(state, KIT, chain=chain))

    assert broken(state.units, outcome.state.units, may_change=outcome.forced_ids) == []
    the_limit_is_obeyed_or_the_outcome_says_exactly_why_not(state, outcome)
    what_was_removed_and_what_stands_are_all_there_was(state, outcome)
    what_is_not_applied_is_not_changed_and_what_is_applied_was_worth_it(state, outcome)
    protected_units_stand_byte_for_byte_unless_they_gave_way_by_name(state, outcome)
    compacting_the_result_again_changes_nothing(outcome, chain)


def the_limit_is_obeyed_or_the_outcome_says_exactly_why_not(state: ContextState, outcome: CompactionOutcome) -> None:
    if outcome.status is Status.FAILED:
        is_strict = state.config.recovery_mode is RecoveryMode.ERROR
        floor = floor_of(state, KIT) if is_strict else least_of(state)
        irreducible = floor.tokens > state.limit
        assert outcome.code is (Code.BREAKER_FAILED if irreducible else Code.TOKEN_LIMIT_EXCEEDED)
        assert irreducible or is_strict
        assert f"{state.limit:,}" in outcome.reason
        assert outcome.state == state
    else:
        assert outcome.state.fits
        assert outcome.estimated_tokens_after == outcome.state.estimated_tokens


def what_was_removed_and_what_stands_are_all_there_was(state: ContextState, outcome: CompactionOutcome) -> None:
    left = {unit.id for unit in outcome.state.units}
    before = {unit.id for unit in without_ledger(state).units}
    assert set(outcome.removed_ids) | (left & before) == before
    assert not set(outcome.removed_ids) & left
    assert set(outcome.removed_ids) <= {receipt.source_id for receipt in outcome.coverage}


def what_is_not_applied_is_not_changed_and_what_is_applied_was_worth_it(
    state: ContextState, outcome: CompactionOutcome
) -> None:
    if outcome.status is not Status.APPLIED:
        assert outcome.state is state
        return
    gained = state.estimated_tokens - outcome.estimated_tokens_after
    assert state.estimated_tokens > targets(state.config, limit=state.limit).trigger
    assert gained >= state.config.min_gain * state.estimated_tokens or not state.fits


def protected_units_stand_byte_for_byte_unless_they_gave_way_by_name(
    state: ContextState, outcome: CompactionOutcome
) -> None:
    now_standing = {unit.id: unit for unit in outcome.state.units}
    may = outcome.forced_ids - (never_shortened(state.units) if waits(state.units) else frozenset())
    for unit in state.units:
        if unit.id in protected_ids(state.units):
            assert (now_standing.get(unit.id) == unit) == (unit.id not in may)


def compacting_the_result_again_changes_nothing(once: CompactionOutcome, chain: Sequence[str] | None) -> None:
    twice = run(compact(once.state, KIT, chain=chain))

    assert twice.state == once.state
    assert twice.status in {Status.SKIPPED, once.status}
