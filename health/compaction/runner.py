"""Runs a compaction where one may wait: answers what it asks, times its steps, and passes them on.

A helper that fails, or answers with something else than was asked for, counts as one that has no answer. The clock
is handed in, in seconds; without one every step takes 0 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from health.compaction.compact import Compacting
from health.compaction.terms.outcome import CompactionOutcome, Step
from health.compaction.terms.ports import Answer, Embed, Embedded, Need, Prune, Summarise, Summarised

Clock = Callable[[], float]

FITTING: dict[type, type] = {Embed: Embedded, Summarise: Summarised, Prune: str}


def nobody(need: Need) -> Answer:
    """The answers of a world without helpers."""
    return None


def run(
    compacting: Compacting,
    *,
    answer: Callable[[Need], Answer] = nobody,
    on_step: Callable[[Step], object] | None = None,
    clock: Clock | None = None,
) -> CompactionOutcome:
    """The outcome of a compaction. What `on_step` raises, and whatever else interrupts it, closes it: nothing is half
    done."""
    watch = Watch(clock or (lambda: 0.0))
    reply: Any = None
    try:
        while True:
            try:
                asked = compacting.send(reply)
            except StopIteration as end:
                return end.value
            if isinstance(asked, Step):
                reply = watch.stamped(asked)
                if on_step:
                    on_step(reply)
                watch.start()
            else:
                reply = watch.answered(asked, answer)
    finally:
        compacting.close()


class Watch:
    """Times one step after another, and of each how long a model was waited for. The clock is in seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.start()

    def start(self) -> None:
        self.since, self.waited = self.clock(), 0.0

    def stamped(self, step: Step) -> Step:
        return replace(step, ms=(self.clock() - self.since) * 1000, waited_ms=self.waited * 1000)

    def answered(self, need: Need, answer: Callable[[Need], Answer]) -> Answer:
        if isinstance(need, Embed):
            return answered(need, answer)
        asked = self.clock()
        given = answered(need, answer)
        self.waited += self.clock() - asked
        return given


def answered(need: Need, answer: Callable[[Need], Answer]) -> Answer:
    """The answer if it is of the kind that was asked for, else None. No exception of a helper passes."""
    try:
        given = answer(need)
    except Exception:
        return None
    return given if isinstance(given, FITTING[type(need)]) else None
