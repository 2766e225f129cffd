"""The ledger in its place."""

from __future__ import annotations

from dataclasses import replace

from health.compaction.config import ContextConfig
from health.compaction.laws.weave import woven
from health.compaction.reading.ledger import extract, is_ledger
from health.compaction.terms.units import Role
from tests.health.compaction.builders import KIT, a_state, a_talk, a_unit, ids

RULE = a_unit("You must never deploy on Fridays.", id="rule")


def test_a_ledger_says_what_no_longer_stands() -> None:
    state = a_state(*a_talk(2), RULE, *a_talk(4, start=2), limit=1000)
    kit = replace(KIT, entries=extract(state.units))

    after = woven(state, [unit for unit in state.units if unit.id != "rule"], kit)

    assert [unit.role for unit in after if is_ledger(unit)] == [Role.USER]


def test_a_limit_that_is_met_exactly_has_no_room_for_a_ledger() -> None:
    state = a_state(*a_talk(2), RULE, *a_talk(4, start=2), limit=60, config=ContextConfig(ledger_share=1.0))
    kit = replace(KIT, entries=extract(state.units))

    after = woven(state, [unit for unit in state.units if unit.id != "rule"], kit)

    assert ids(after) == ["t0", "t1", "t2", "t3", "t4", "t5"]


def test_a_ledger_never_stands_before_a_system_prompt_that_has_come_to_open_the_context() -> None:
    """What was said before the system prompt has left; the ledger of that run stands in its place."""
    system = a_unit("be brief", id="system", role=Role.SYSTEM)
    state = a_state(RULE, system, *a_talk(4), limit=1000)
    kit = replace(KIT, entries=extract(state.units))
    once = woven(state, state.units[1:], kit)
    opened_by_ledger = state.having(sorted(once, key=is_ledger, reverse=True))

    after = woven(opened_by_ledger, opened_by_ledger.units, kit)

    assert ids(once)[0] == ids(after)[0] == "system"
