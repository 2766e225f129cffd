"""Messages that arrive while a compaction runs are neither lost nor compacted unseen."""

from __future__ import annotations

from health.compaction.arrivals import with_arrivals
from health.compaction.chain import compact
from health.compaction.invariants import broken
from health.compaction.runner import run
from tests.health.compaction.builders import KIT, a_round, a_state, a_talk

BEFORE = a_state(*a_talk(40), limit=300)
OUTCOME = run(compact(BEFORE, KIT, chain=["truncate"], judge=False))


def test_what_arrived_stands_behind_the_result() -> None:
    arrived = KIT.counted((*a_talk(2, start=40), *a_round("look", "found")))
    now = BEFORE.having((*BEFORE.units, *arrived))

    after = with_arrivals(OUTCOME, before=BEFORE, now=now)

    assert after is not None
    assert after.units == (*OUTCOME.state.units, *arrived)
    assert broken(BEFORE.units, after.units) == []


def test_a_result_is_stale_when_what_it_was_made_from_has_changed() -> None:
    edited = BEFORE.having((BEFORE.units[0].saying("something else"), *BEFORE.units[1:]))

    assert with_arrivals(OUTCOME, before=BEFORE, now=edited) is None


def test_a_result_is_stale_when_messages_were_taken_back() -> None:
    assert with_arrivals(OUTCOME, before=BEFORE, now=BEFORE.having(BEFORE.units[:-1])) is None
