"""What holds at the face for every conversation, every strategy and chain, and every limit from tiny to ample.

`compaction/test_properties.py` shows the laws of the chain; here they are asked of the messages that come out.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.compaction.laws.invariants import broken, broken_request, protected_ids
from health.compaction.reading.messages import parse, render
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import Status
from health.compaction.terms.units import Unit
from health.services import compact_messages
from tests.health.compaction.histories import histories

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 200}}
CHAINS = st.one_of(
    st.none(),
    st.sampled_from(sorted(REGISTRY)).map(lambda name: [name]),
    st.lists(st.sampled_from([*sorted(REGISTRY), "unknown"]), min_size=1, max_size=4),
)
LIMITS = st.one_of(st.integers(1, 120), st.integers(120, 1500), st.integers(1500, 20_000))
PATIENT = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def as_messages(units: Sequence[Unit]) -> list[dict[str, Any]]:
    return [_as_message(unit) for unit in units]


def _as_message(unit: Unit) -> dict[str, Any]:
    content: Any = [{"type": "text", "text": unit.content}, IMAGE] if unit.image_tokens else unit.content
    message: dict[str, Any] = {"role": unit.role.value, "content": content}
    if unit.calls:
        asked = [{"id": call.id, "function": {"name": call.name, "arguments": "{}"}} for call in unit.calls]
        message |= {"content": unit.content or None, "tool_calls": asked, "reasoning_content": "I must look."}
    if unit.answers is not None:
        message |= {"tool_call_id": unit.answers}
    marks = {"priority": unit.priority and int(unit.priority), "pinned": unit.pinned, "inserted": unit.inserted}
    return message | ({"dominds": marks} if any(marks.values()) else {})


chats = histories().map(as_messages)


@given(chats)
@settings(deadline=None)
def test_reading_and_writing_changes_nothing(messages: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(messages)

    parsed = parse(messages)

    assert render(parsed.units, parsed.originals) == before == messages
    assert parsed.warnings == ()


@given(chats, LIMITS, CHAINS, st.sampled_from(["", "What was decided about the invoice import?"]))
@PATIENT
def test_the_laws_hold_and_the_limit_is_obeyed_or_the_reason_told(
    messages: list[dict[str, Any]], limit: int, chain: list[str] | None, task: str
) -> None:
    before = copy.deepcopy(messages)

    outcome = compact_messages(messages, limit_tokens=limit, chain=chain, task=task, embedder="none")

    assert messages == before
    assert not messages or broken_request(outcome.messages) == []
    assert outcome.reason
    if outcome.status is Status.APPLIED:
        assert outcome.estimated_tokens_after <= limit
        before_it = _counted_alike(parse(messages).units, outcome.state.units)
        assert broken(before_it, outcome.state.units, may_change=outcome.forced_ids) == []
    else:
        assert outcome.messages == before
    assert outcome.status is Status.FAILED or outcome.estimated_tokens_after <= limit


def _counted_alike(before: Sequence[Unit], after: Sequence[Unit]) -> list[Unit]:
    """What an image costs is counted by the run for its model; an image that left still differs."""
    costs = {unit.id: unit.image_tokens for unit in after}
    return [replace(unit, image_tokens=costs.get(unit.id) or unit.image_tokens) for unit in before]


@given(chats, LIMITS, CHAINS)
@PATIENT
def test_what_is_protected_stands_word_for_word_in_the_messages(
    messages: list[dict[str, Any]], limit: int, chain: list[str] | None
) -> None:
    outcome = compact_messages(messages, limit_tokens=limit, chain=chain, embedder="none")

    parsed = parse(messages)
    kept = protected_ids(parsed.units)
    for unit in parsed.units:
        if unit.id in kept and unit.id not in outcome.forced_ids:
            assert parsed.originals[unit.id] in outcome.messages


@given(chats, LIMITS, CHAINS)
@PATIENT
def test_compacting_the_result_again_changes_nothing(
    messages: list[dict[str, Any]], limit: int, chain: list[str] | None
) -> None:
    once = compact_messages(messages, limit_tokens=limit, chain=chain, embedder="none")

    again = compact_messages(once.messages, limit_tokens=limit, chain=chain, embedder="none")

    # A fresh start beside much that must stay may come to more than what begins the next run.
    assert again.messages == once.messages or (once.recovered and once.estimated_tokens_after > int(0.8 * limit))
