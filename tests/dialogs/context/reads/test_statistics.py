"""The plan's statistics: characters / 4, images at 100, one line every five steps in debug mode."""

from __future__ import annotations

from dialogs.context.reads.task_snapshot import ContextStats, is_due, stats
from health.compaction.snapshot import TaskSnapshot, begun
from health.compaction.terms.units import Call, Role
from tests.health.compaction.builders import a_unit


def test_the_debug_line_reads_as_the_seed_writes_it() -> None:
    seen = ContextStats(message_count=18, estimated_tokens=4500, has_snapshot=True)

    assert str(seen) == "Context stats: 18 messages, ~4500 tokens"


def test_a_token_is_four_characters() -> None:
    assert stats([a_unit("x" * 17_996), a_unit("xxxx")]).estimated_tokens == 4500


def test_characters_are_not_bytes() -> None:
    assert stats([a_unit("中" * 40)]).estimated_tokens == 10


def test_an_image_is_a_hundred_tokens() -> None:
    without, having = stats([a_unit("look")]), stats([a_unit("look", image_tokens=100)])

    assert having.estimated_tokens - without.estimated_tokens == 100


def test_a_call_is_counted_as_json() -> None:
    call = Call(id="c", name="click", arguments='{"x": 1}')

    counted = stats([a_unit("", role=Role.ASSISTANT, calls=(call,))])

    assert counted.estimated_tokens == -(-len('{"name":"click","arguments":{"x":1}}') // 4)


def test_a_result_is_counted_as_json() -> None:
    text = a_unit("ab\n" * 4, role=Role.TOOL, answers="c")  # 12 characters, 4 escapes, 2 quotes

    assert stats([text]).estimated_tokens == 5


def test_a_result_nested_too_deep_is_counted_as_text() -> None:
    assert stats([a_unit("[" * 100_000, role=Role.TOOL, answers="c")]).estimated_tokens == 25_001


def test_messages_are_counted_and_a_snapshot_is_noticed() -> None:
    assert stats([a_unit(), a_unit()], snapshot=begun("a goal")).message_count == 2
    assert stats([], snapshot=begun("a goal")).has_snapshot


def test_after_a_reset_there_is_nothing() -> None:
    assert stats([], snapshot=TaskSnapshot()) == ContextStats(message_count=0, estimated_tokens=0, has_snapshot=False)


def test_the_line_is_due_every_five_steps_in_debug_mode() -> None:
    assert [step for step in range(17) if is_due(step, debug=True)] == [5, 10, 15]


def test_the_line_is_never_due_outside_debug_mode() -> None:
    assert not any(is_due(step, debug=False) for step in range(17))
