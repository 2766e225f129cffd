"""What became of each message, read off two contexts."""

from __future__ import annotations

from health.compaction.terms.units import Kind
from health.management.commands.compact import Fate, fates
from tests.health.compaction.builders import a_unit

BEFORE = tuple(a_unit(f"words of {name}", id=name) for name in ("whole", "short", "told", "gone", "counted"))
DIGEST = a_unit("[Summary…]", id="s", kind=Kind.SUMMARY, source_ids=("told",))
GAP = a_unit("[Omitted…]", id="p", kind=Kind.PLACEHOLDER, source_ids=("counted",))


def test_each_message_has_one_fate() -> None:
    after = (BEFORE[0], BEFORE[1].saying("words"), DIGEST, GAP)

    assert fates(BEFORE, after) == {
        "whole": Fate.KEPT,
        "short": Fate.SHORTENED,
        "told": Fate.SUMMARISED,
        "gone": Fate.DROPPED,
        "counted": Fate.DROPPED,
    }


def test_a_summary_that_is_summarised_again_is_told_by_the_new_one() -> None:
    again = a_unit("[Summary…]", id="s2", kind=Kind.SUMMARY, source_ids=("told", "whole"))

    assert fates((DIGEST, BEFORE[0]), (again,)) == {"s": Fate.SUMMARISED, "whole": Fate.SUMMARISED}


def test_nothing_changed_is_all_kept() -> None:
    assert set(fates(BEFORE, BEFORE).values()) == {Fate.KEPT}
