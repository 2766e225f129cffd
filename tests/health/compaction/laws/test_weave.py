"""The ledger in its place."""

from __future__ import annotations

from dataclasses import replace

from health.compaction.config import ContextConfig
from health.compaction.laws.weave import ledger_beside, without_ledger, woven
from health.compaction.reading.ledger import extract, is_ledger
from health.compaction.terms.units import ContextState, Kind, Role, total
from tests.health.compaction.builders import KIT, a_round, a_state, a_talk, a_unit, ids

ALL = ContextConfig(ledger_share=1.0)
RULE = a_unit("You must never deploy on Fridays.", id="rule")


def test_a_ledger_says_what_no_longer_stands() -> None:
    state = a_state(*a_talk(2), RULE, *a_talk(4, start=2), limit=1000)
    kit = replace(KIT, entries=extract(state.units))

    after = woven(state, [unit for unit in state.units if unit.id != "rule"], kit)

    assert [unit.role for unit in after if is_ledger(unit)] == [Role.USER]


def test_a_limit_that_is_met_exactly_has_no_room_for_a_ledger() -> None:
    state = a_state(*a_talk(2), RULE, *a_talk(4, start=2), limit=60, config=ALL)
    kit = replace(KIT, entries=extract(state.units))

    after = woven(state, [unit for unit in state.units if unit.id != "rule"], kit)

    assert ids(after) == ["t0", "t1", "t2", "t3", "t4", "t5"]


def test_what_is_sent_beside_messages_takes_the_ledgers_room() -> None:
    beside = replace(a_state(RULE, *a_talk(6), limit=160, config=ALL), overhead_tokens=100)
    roomy = replace(beside, limit=400)
    kit = replace(KIT, entries=extract(beside.units))

    narrow, wide = (woven(state, state.units[1:], kit) for state in (beside, roomy))

    assert not any(is_ledger(unit) for unit in narrow)
    assert any(is_ledger(unit) for unit in wide)


def test_a_limit_that_is_broken_anyway_leaves_the_ledger_its_share() -> None:
    state = a_state(RULE, *a_talk(6), limit=59, config=ALL)
    kit = replace(KIT, entries=extract(state.units))

    assert any(is_ledger(unit) for unit in woven(state, state.units[1:], kit))


def test_a_ledger_stands_before_the_round_from_which_something_left() -> None:
    asked, answered = a_round("look", "found", id="r")
    state = a_state(asked, RULE, answered, *a_talk(4), limit=1000)
    kit = replace(KIT, entries=extract(state.units))

    after = woven(state, [asked, answered, *state.units[3:]], kit)

    assert [is_ledger(unit) for unit in after] == [True, *[False] * 6]


def test_where_nothing_left_a_ledger_of_earlier_stands_last_and_has_the_last_messages_time() -> None:
    state = a_state(*a_talk(4), limit=1000)
    kit = replace(KIT, entries=extract((RULE,)))

    *_, last, ledger = woven(state, state.units, kit)

    assert is_ledger(ledger)
    assert ledger.timestamp == last.timestamp


def test_what_a_ledger_would_take_is_known_before() -> None:
    state = a_state(RULE, *a_talk(4), limit=1000)
    kit = replace(KIT, entries=extract(state.units))

    woven_in = woven(state, state.units[1:], kit)

    assert ledger_beside(state.units[1:], state, kit) == total(unit for unit in woven_in if is_ledger(unit)) > 0
    assert ledger_beside(state.units, state, kit) == 0


def test_a_ledger_never_stands_before_a_system_prompt_that_has_come_to_open_the_context() -> None:
    """What was said before the system prompt has left; the ledger of that run stands in its place."""
    system = a_unit("be brief", id="system", role=Role.SYSTEM)
    state = a_state(RULE, system, *a_talk(4), limit=1000)
    kit = replace(KIT, entries=extract(state.units))
    once = woven(state, state.units[1:], kit)
    opened_by_ledger = state.with_units(sorted(once, key=is_ledger, reverse=True))

    after = woven(opened_by_ledger, opened_by_ledger.units, kit)

    assert ids(once)[0] == ids(after)[0] == "system"


def carried() -> ContextState:
    """The rule has left; a ledger says it."""
    state = a_state(RULE, *a_talk(4), limit=1000, overhead_tokens=7)
    return state.with_units(woven(state, state.units[1:], replace(KIT, entries=extract(state.units))))


def test_a_strategy_sees_no_ledger_but_its_tokens() -> None:
    state = carried()
    ledger = total(unit for unit in state.units if is_ledger(unit))

    seen = without_ledger(state)

    assert ids(seen) == ["t0", "t1", "t2", "t3"]
    assert (seen.overhead_tokens, seen.ledger_tokens) == (7 + ledger, ledger)
    assert seen.estimated_tokens == state.estimated_tokens


def test_without_a_ledger_a_strategy_sees_the_state_as_it_is() -> None:
    state = a_state(a_unit("[Summary…]", kind=Kind.SUMMARY), *a_talk(2))

    assert without_ledger(state) is state


def test_other_summaries_stay_and_so_does_a_ledger_that_a_person_pastes() -> None:
    ledger = next(unit for unit in carried().units if is_ledger(unit))
    summary, pasted = a_unit("[Summary…]", id="s", kind=Kind.SUMMARY), a_unit(ledger.content, id="pasted")
    state = a_state(summary, *KIT.counted([ledger]), pasted, limit=1000)

    assert ids(without_ledger(state)) == ["s", "pasted"]
    assert without_ledger(state).ledger_tokens == total(KIT.counted([ledger]))


def test_a_ledger_stands_where_the_rule_stood_also_beside_a_round() -> None:
    state = a_state(*a_talk(1), RULE, *a_round("look", "found", id="r"), limit=1000)
    alone = a_state(RULE, *a_round("look", "found", id="r"), limit=1000)
    kit = replace(KIT, entries=extract((RULE,)))

    later, first = (woven(each, [unit for unit in each.units if unit.id != "rule"], kit) for each in (state, alone))

    assert [is_ledger(unit) for unit in later] == [False, True, False, False]
    assert [is_ledger(unit) for unit in first] == [True, False, False]
