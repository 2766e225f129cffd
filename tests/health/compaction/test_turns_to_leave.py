"""P1 stays; P3 leaves before P2, and that before all else, whatever a strategy thinks that a message is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from health.compaction.compact import compact
from health.compaction.reading.ledger import extract
from health.compaction.runner import run
from health.compaction.strategies import REGISTRY
from health.compaction.terms.units import WRITTEN, ContextState, Priority
from tests.health.compaction.builders import KIT, a_state, a_talk, like_marked, play

ORDERED = ["truncate", "discard_low_rel", "prioritize_recent", "sliding_window", "select_passages"]
TAGS = (Priority.P3, None, Priority.P2)
PLACES = ("Bergen", "Cork", "Delft", "Essen", "Fano", "Gent", "Hilo", "Izmir", "Jena", "Kyoto", "Lund", "Metz", "Nara")


def told(at: int) -> str:
    """Twelve words; nothing repeats that would make one message worth more than another."""
    place = PLACES[at % len(PLACES)]
    return " ".join(f"{place}{at}x{number}" for number in range(12))


def a_tagged_talk(limit: int) -> ContextState:
    """Each third message P3, each third P2, no other tag; the first and the last message are protected."""
    talk = a_talk(60, words=12)
    tagged = [
        replace(unit, priority=TAGS[at % 3], content=told(at)) if 0 < at < 59 else unit for at, unit in enumerate(talk)
    ]
    return a_state(*tagged, limit=limit, task="what was said of Gent")


def standing(state: ContextState) -> Mapping[Priority | None, int]:
    """How many words of messages of each tag the model still sees; what the ledger carries is another matter."""
    text = " ".join(unit.content for unit in state.units if unit.kind not in WRITTEN)
    words = {tag: [word for at in range(1, 59) if TAGS[at % 3] == tag for word in told(at).split()] for tag in TAGS}
    return {tag: sum(word in text for word in of_tag) for tag, of_tag in words.items()}


@pytest.mark.parametrize("strategy", ORDERED)
@pytest.mark.parametrize("limit", [350, 500, 650])
def test_a_strategy_takes_p3_before_p2_before_all_else(strategy: str, limit: int) -> None:
    state = a_tagged_talk(limit)

    attempt = play(REGISTRY[strategy], state, like_marked)

    left = standing(attempt.state)
    assert left[Priority.P3] <= left[Priority.P2] <= left[None]
    assert left[Priority.P3] < left[None]


@pytest.mark.parametrize("chain", [None, ("select_passages",), ("truncate",), ("discard_low_rel", "truncate")])
def test_a_run_that_must_take_a_third_takes_what_is_tagged_p3(chain: tuple[str, ...] | None) -> None:
    state = a_tagged_talk(600)

    outcome = run(compact(state, KIT, chain=chain, judge=False), answer=like_marked)

    left = standing(outcome.state)
    assert left[Priority.P3] <= left[Priority.P2] <= left[None]
    assert left[Priority.P3] < left[None]


def test_a_rule_stated_in_a_message_of_the_last_priority_is_still_carried() -> None:
    rule = "Never deploy on a Friday."
    units = list(a_tagged_talk(500).units)
    units[6] = units[6].saying(rule)

    assert units[6].priority is Priority.P3
    assert rule in [entry.text for entry in extract(units)]
