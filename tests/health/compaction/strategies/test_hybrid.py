"""hybrid: the strategies before it once more, in passes, each tighter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction import strategies
from health.compaction.config import CHAIN_ORDER, ContextConfig, Hybrid
from health.compaction.strategies.hybrid import TIGHTER, hybrid, tightened
from health.compaction.terms.ports import Attempt, Kit, Read, StrategyRun, unchanged
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from tests.health.compaction.builders import (
    a_round,
    a_state,
    a_talk,
    a_unit,
    like_marked,
    p1,
    pinned,
    play,
)

SHARES = ContextConfig()


class Recording:
    """A strategy that notes what it is run with, and drops the second unit of all while there are more than three."""

    def __init__(self, *, drops: bool = True) -> None:
        self.configs: list[ContextConfig] = []
        self.drops = drops

    def __call__(self, state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        self.configs.append(state.config)
        if not self.drops or len(state.units) <= 3:
            return unchanged(state, "no more")
        gone = state.units[1]
        read = Read(source_id=gone.id, read=1, total=1)
        return Attempt(state=state.with_units((state.units[0], *state.units[2:])), changed=True, reads=(read,))


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recorded = Recording()
    monkeypatch.setitem(strategies.REGISTRY, "recorded", recorded)
    return recorded


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recorded = Recording(drops=False)
    monkeypatch.setitem(strategies.REGISTRY, "idle", recorded)
    return recorded


def chained(*names: str, passes: int = 3, units: int = 12, limit: int = 10) -> ContextState:
    config = ContextConfig(chain_order=names, hybrid=Hybrid(max_iterations=passes))
    return a_state(*a_talk(units), limit=limit, config=config)


def test_it_repeats_what_stands_before_it(recording: Recording, idle: Recording) -> None:
    play(hybrid, chained("recorded", "hybrid", "idle"))

    assert recording.configs
    assert not idle.configs


@pytest.mark.parametrize("more", [{}, {"passes": 0}, {"passes": 1}, {"passes": 5}, {"units": 100}])
def test_it_runs_as_many_passes_as_configured_and_at_most_three_by_default(
    recording: Recording, more: dict[str, int]
) -> None:
    """The first plan never read max_iterations. A pass over 100 units saves a hundredth, which is enough."""
    play(hybrid, chained("foo", "recorded", "hybrid", **more))

    assert len(recording.configs) == more.get("passes", 3)


def test_each_pass_goes_on_from_the_last_one_and_is_tighter(recording: Recording) -> None:
    state = chained("recorded", "hybrid")

    attempt = play(hybrid, state)

    assert len(attempt.state.units) == 9
    assert [read.source_id for read in attempt.reads] == ["t1", "t2", "t3"]
    assert [config.summarize_old.summary_length for config in recording.configs] == [225, 150, 75]
    assert attempt.state.config == state.config


def test_passes_beyond_the_table_are_as_tight_as_its_last(recording: Recording) -> None:
    play(hybrid, chained("recorded", "hybrid", passes=5))

    assert [config.prioritize_recent.recent_bias for config in recording.configs][2:] == [0.05, 0.05, 0.05]


def test_a_pass_that_saves_less_than_a_hundredth_is_the_last(recording: Recording, idle: Recording) -> None:
    play(hybrid, chained("recorded", "hybrid", units=101))
    play(hybrid, chained("idle", "hybrid"))

    assert (len(recording.configs), len(idle.configs)) == (1, 1)


def test_it_stops_at_the_goal(recording: Recording) -> None:
    attempt = play(hybrid, chained("recorded", "hybrid", limit=160))

    assert attempt.state.estimated_tokens == 110
    assert attempt.note == "1 pass"


def test_it_stops_at_the_goal_in_the_middle_of_a_pass(recording: Recording, idle: Recording) -> None:
    play(hybrid, chained("recorded", "idle", "hybrid", limit=160))

    assert not idle.configs


def test_at_the_goal_nothing_is_run(recording: Recording) -> None:
    state = chained("recorded", "hybrid", limit=1000)

    attempt = play(hybrid, state)

    assert (attempt.changed, attempt.state, attempt.note) == (False, state, "already at the goal")
    assert not recording.configs


def test_it_never_runs_itself_and_alone_in_its_chain_it_changes_nothing(recording: Recording) -> None:
    """The first plan's hybrid stood in its own chain."""
    state = chained("hybrid", "recorded", "hybrid")

    assert play(hybrid, state).state == state
    assert not recording.configs


def test_in_no_chain_it_repeats_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = {name: Recording(drops=False) for name in CHAIN_ORDER[:-1]}
    for name, strategy in recorded.items():
        monkeypatch.setitem(strategies.REGISTRY, name, strategy)

    play(hybrid, chained("truncate"))

    assert all(strategy.configs for strategy in recorded.values())


def test_a_step_that_grows_the_context_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def growing(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        return Attempt(state=state.with_units(kit.counted((*state.units, *a_talk(5)))), changed=True)

    monkeypatch.setitem(strategies.REGISTRY, "growing", growing)
    state = chained("growing", "hybrid")

    attempt = play(hybrid, state)

    assert (attempt.changed, attempt.state) == (False, state)
    assert attempt.note == "tighter parameters saved nothing"


def test_every_factor_is_tighter_than_the_one_before() -> None:
    assert list(TIGHTER) == sorted(TIGHTER, reverse=True)
    assert TIGHTER[0] < 1


def test_the_old_part_grows_as_less_is_kept_of_the_new() -> None:
    assert tightened(SHARES, 0.5).summarize_old.old_threshold == pytest.approx(0.8)


def test_more_relevance_is_asked_for() -> None:
    assert tightened(SHARES, 0.5).prioritize_recent.rel_threshold == 0.75


def test_more_is_discarded() -> None:
    assert tightened(SHARES, 0.5).discard_low_rel.discard_percent == pytest.approx(0.65)


def test_each_kind_is_compressed_more_but_plans_stay_whole() -> None:
    ratios = tightened(SHARES, 0.5).content_type_chunking.compress_ratios

    assert (ratios.code, ratios.text, ratios.log, ratios.other, ratios.plan_ref) == (0.35, 0.25, 0.2, 0.3, 1.0)


def test_the_window_is_smaller_but_never_empty() -> None:
    assert tightened(SHARES, 0.5).sliding_window.max_messages == 12
    assert tightened(SHARES, 0.001).sliding_window.max_messages == 1


def test_the_bounds_of_coherence_stay() -> None:
    tight = tightened(SHARES, 0.25)

    assert (tight.summarize_old.min_coherence, tight.discard_low_rel.min_coherence) == (0.7, 0.6)


def the_seeds(*units: Unit, limit: int) -> ContextState:
    return a_state(*(replace(unit, timestamp=float(at)) for at, unit in enumerate(units)), limit=limit, task="the task")


def a_mixture() -> tuple[Unit, ...]:
    said = a_talk(12, words=40, mark="~0.3")
    system = a_unit("be kind", role=Role.SYSTEM, id="s")
    return (system, *said[:5], *a_round("look", "found " * 90, id="r"), p1(said[5]), pinned(said[6]), *said[7:])


def test_with_the_seeds_chain_it_comes_under_the_limit() -> None:
    state = the_seeds(*a_mixture(), limit=300)

    assert play(hybrid, state, like_marked).state.fits


def test_a_plan_reference_survives_in_full_or_not_at_all() -> None:
    plan = replace(a_unit("# Plan\n" + "- [ ] step of the plan\n" * 20, role=Role.ASSISTANT), kind=Kind.PLAN_REF)
    said = a_talk(12, words=30)
    state = the_seeds(*said[:9], plan, *said[9:], limit=400)

    after = play(hybrid, state, like_marked).state

    assert all(unit.content == plan.content for unit in after.units if unit.kind is Kind.PLAN_REF)
