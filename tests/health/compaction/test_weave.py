"""The ledger in its place."""

from __future__ import annotations

from dataclasses import replace

from health.compaction.config import ContextConfig
from health.compaction.ledger import extract, is_ledger
from health.compaction.units import Role
from health.compaction.weave import woven
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
