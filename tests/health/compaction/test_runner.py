"""The runner: answers, times, tells, and never lets a helper break a compaction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from health.compaction.compact import Compacting, compact
from health.compaction.runner import run
from health.compaction.terms.outcome import Step
from health.compaction.terms.ports import (
    Embed,
    Embedded,
    Kit,
    Need,
    Prune,
    StrategyRun,
    Summarise,
    Summarised,
    unchanged,
)
from health.compaction.terms.units import ContextState
from tests.health.compaction.builders import KIT, a_state, a_talk

VECTORS = Embedded(vectors=np.ones((1, 2), dtype=np.float32), name="ones")
SUMMARY = Summarised(text="in short", finished=True, read_chars={})


def asking(*needs: Need, heard: list[Any], closed: list[bool] | None = None) -> Compacting:
    """A run whose only strategy asks for these, and remembers what it heard."""

    def strategy(state: ContextState, kit: Kit) -> StrategyRun:
        try:
            for need in needs:
                heard.append((yield need))
        finally:
            (closed if closed is not None else []).append(True)
        return unchanged(state, "")

    state = a_state(*a_talk(10), limit=100)
    return compact(state, KIT, chain=["asks"], strategies={"asks": strategy})


@pytest.mark.parametrize(
    ("need", "answer"),
    [
        (Embed(texts=("a",)), VECTORS),
        (Summarise(source=(), max_tokens=9), SUMMARY),
        (Prune(units=(), target_tokens=9), '{"drop": []}'),
    ],
)
def test_each_need_hears_its_answer(need: Need, answer: Any) -> None:
    heard: list[Any] = []

    run(asking(need, heard=heard), answer=lambda asked: answer)

    assert heard == [answer]


@pytest.mark.parametrize(
    ("need", "answer"),
    [
        (Embed(texts=("a",)), "vectors"),
        (Embed(texts=("a",)), SUMMARY),
        (Summarise(source=(), max_tokens=9), "text"),
        (Prune(units=(), target_tokens=9), {"drop": []}),
        (Prune(units=(), target_tokens=9), b"{}"),
    ],
)
def test_an_answer_of_another_kind_counts_as_none(need: Need, answer: Any) -> None:
    heard: list[Any] = []

    run(asking(need, heard=heard), answer=lambda asked: answer)

    assert heard == [None]


def test_a_helper_that_fails_half_way_has_no_answer_from_then_on() -> None:
    heard: list[Any] = []

    def failing(need: Need) -> Any:
        if heard:
            raise ConnectionError("gone")
        return VECTORS

    outcome = run(asking(Embed(texts=("a",)), Embed(texts=("b",)), heard=heard), answer=failing)

    assert heard == [VECTORS, None]
    assert outcome.embedder == "ones, lexical"


def test_without_an_answerer_nothing_is_answered() -> None:
    heard: list[Any] = []

    run(asking(Embed(texts=("a",)), heard=heard))

    assert heard == [None]


def test_each_step_is_told_with_its_time_and_is_the_one_in_the_outcome() -> None:
    times = iter([0.0, 0.25, 0.25, 1.25, 1.25])
    told: list[Step] = []

    outcome = run(asking(heard=[]), on_step=told.append, clock=lambda: next(times))

    assert [(step.phase, step.ms) for step in told] == [("detection", 250.0), ("asks", 1000.0)]
    assert outcome.steps == tuple(told)


@pytest.mark.parametrize(
    ("need", "waited_ms"),
    [
        (Prune(units=(), target_tokens=10), 15_000),
        (Summarise(source=(), max_tokens=10), 15_000),
        (Embed(texts=("a",)), 0),  # our own work
    ],
)
def test_of_a_steps_time_it_is_known_how_long_a_model_was_waited_for(need: Need, waited_ms: float) -> None:
    hand = 0.0

    def slow(need: Need) -> None:
        nonlocal hand
        hand += 15.0

    detection, asks = run(asking(need, heard=[]), answer=slow, clock=lambda: hand).steps

    assert (detection.ms, detection.waited_ms) == (0, 0)
    assert (asks.ms, asks.waited_ms) == (15_000, waited_ms)


def test_without_a_clock_steps_take_no_time() -> None:
    assert {step.ms for step in run(asking(heard=[])).steps} == {0.0}


@pytest.mark.parametrize("where", ["answer", "on_step"])
def test_an_interruption_closes_the_run_and_passes(where: str) -> None:
    def interrupted(value: Any) -> Any:
        if isinstance(value, Need) or value.phase == "asks":
            raise KeyboardInterrupt
        return None

    closed: list[bool] = []
    running = asking(Embed(texts=("a",)), heard=[], closed=closed)

    with pytest.raises(KeyboardInterrupt):
        run(running, **{where: interrupted})

    assert closed == [True]
    with pytest.raises(StopIteration):
        next(running)
