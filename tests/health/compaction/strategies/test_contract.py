"""What every strategy promises by itself: the chain refuses a step that breaks a law, so nobody would see it there."""

from __future__ import annotations

import json
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from health.compaction.config import PayloadLimits
from health.compaction.laws.invariants import broken
from health.compaction.strategies import REGISTRY
from health.compaction.terms.ports import Answer, Embed, Embedded, Need, Prune
from health.compaction.terms.units import ContextState
from tests.health.compaction.builders import a_state, a_talk, p1, play
from tests.health.compaction.histories import KIT, states

EVERY = pytest.mark.parametrize("name", sorted(REGISTRY))
# Those that leave messages out without having looked at them, and those that find something to do each time.
UNREAD = {"discard_low_rel", "keep_last_five", "prioritize_recent", "sliding_window", "truncate"}
NEVER_DONE = {"discard_low_rel", "summarize_old"}


def helped(need: Need) -> Answer:
    """Texts point anywhere, and an agent drops the second half of what it is shown."""
    if isinstance(need, Prune):
        return json.dumps({"drop": [unit.id for unit in need.units[len(need.units) // 2 :]]})
    if not isinstance(need, Embed):
        return None
    cosines = np.array([crc32(text.encode()) % 100 / 100 for text in need.texts], dtype=np.float32)
    return Embedded(vectors=np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1), name="anywhere")


@EVERY
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(state=states(payloads=PayloadLimits(bulky_tokens=20, array_head=1, array_tail=1)))
def test_no_law_is_broken_whatever_is_there(name: str, state: ContextState) -> None:
    attempt = play(REGISTRY[name], state, helped, kit=KIT)

    after = attempt.state.units
    assert broken(state.units, after, may_change=attempt.forced_ids) == []
    assert KIT.counted(replace(unit, estimated_tokens=None) for unit in after) == after
    assert attempt.changed or attempt.state == state
    assert name not in UNREAD or attempt.reads == ()
    assert name in NEVER_DONE or not play(REGISTRY[name], attempt.state, helped, kit=KIT).changed


@EVERY
@pytest.mark.parametrize("length", [0, 1])
def test_a_history_of_nothing_or_of_one_message_stays(name: str, length: int) -> None:
    state = a_state(*a_talk(length, words=500), limit=10)

    assert play(REGISTRY[name], state, helped).state == state


@EVERY
def test_where_all_is_protected_nothing_changes(name: str) -> None:
    state = a_state(*map(p1, a_talk(30, words=40)), limit=100, task="the task")

    assert play(REGISTRY[name], state, helped).state == state
