"""The plan's statistics: characters / 4, images at 100, one line every five steps in debug mode."""

from __future__ import annotations

import pytest

from dialogs.context.reads import ContextStats, is_due, stats
from health.compaction.snapshot import TaskSnapshot, begun
from health.compaction.terms.units import Call, Role, Unit
from tests.health.compaction.builders import a_unit


def test_the_debug_line_reads_as_the_seed_writes_it() -> None:
    seen = ContextStats(message_count=18, estimated_tokens=4500, has_snapshot=True)

    assert str(seen) == "Context stats: 18 messages, ~4500 tokens"


@pytest.mark.parametrize(
    ("units", "tokens"),
    [
        ([a_unit("x" * 17_996), a_unit("xxxx")], 4500),
        ([a_unit("中" * 40)], 10),  # characters, not bytes
        ([a_unit("look", image_tokens=100)], 1 + 100),
        # Calls and results count as JSON: 12 characters, 4 escapes, 2 quotes.
        ([a_unit("", role=Role.ASSISTANT, calls=(Call(id="c", name="click", arguments='{"x": 1}'),))], 9),
        ([a_unit("ab\n" * 4, role=Role.TOOL, answers="c")], 5),
        # Nested too deep for that: as text.
        ([a_unit("[" * 100_000, role=Role.TOOL, answers="c")], 25_001),
    ],
)
def test_a_token_is_four_characters_and_an_image_a_hundred_tokens(units: list[Unit], tokens: int) -> None:
    assert stats(units).estimated_tokens == tokens


def test_messages_are_counted_and_a_snapshot_is_noticed() -> None:
    found = stats([a_unit(), a_unit()], snapshot=begun("a goal"))

    assert (found.message_count, found.has_snapshot) == (2, True)
    # After a reset there is nothing.
    assert stats([], snapshot=TaskSnapshot()) == ContextStats(message_count=0, estimated_tokens=0, has_snapshot=False)


def test_the_line_is_due_every_five_steps_in_debug_mode_alone() -> None:
    assert [step for step in range(17) if is_due(step, debug=True)] == [5, 10, 15]
    assert not any(is_due(step, debug=False) for step in range(17))
