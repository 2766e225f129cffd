"""The task snapshot: goal, phase, completed actions, key observations. Seed 3; not a reading of context health.

A compact statement of progress that goes to the model as one short block, so that a trimmed window still knows
what it is for. Beside it, the gate of seed 3 before the bulky `elementsJson`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from health.compaction.config import PayloadLimits

PLANNING, EXECUTING, COMPLETED = "planning", "executing", "completed"
FAILURES_BEFORE_ELEMENTS = 3
_LINE_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class TaskSnapshot:
    """An update names what it changes; the rest stays. A new task begins with a new snapshot (`begun`)."""

    goal: str = ""
    current_phase: str = PLANNING
    completed_actions: tuple[str, ...] = ()
    key_observations: tuple[str, ...] = ()

    def updated(
        self,
        *,
        goal: str | None = None,
        current_phase: str | None = None,
        completed_actions: Iterable[str] | None = None,
        key_observations: Iterable[str] | None = None,
    ) -> TaskSnapshot:
        return replace(
            self,
            goal=self.goal if goal is None else goal,
            current_phase=self.current_phase if current_phase is None else current_phase,
            completed_actions=self.completed_actions if completed_actions is None else tuple(completed_actions),
            key_observations=self.key_observations if key_observations is None else tuple(key_observations),
        )

    def acted(self, tool: str) -> TaskSnapshot:
        """One action more; the first one ends the planning."""
        phase = EXECUTING if self.current_phase == PLANNING else self.current_phase
        return replace(self, completed_actions=(*self.completed_actions, tool), current_phase=phase)

    def block(self, *, limits: PayloadLimits | None = None) -> str:
        """What the model reads: a line each, the newest actions only, nothing of it in the shape of a new message."""
        shown = self.completed_actions[-(limits or PayloadLimits()).max_actions :]
        actions = f"Completed actions ({len(shown)} of {len(self.completed_actions)}, newest last)"
        lines = (
            ("Goal", (self.goal,)),
            ("Phase", (self.current_phase,)),
            (actions, shown),
            ("Key observations", self.key_observations),
        )
        told = [f"{name}: {'; '.join(map(_line, values))}" for name, values in lines if any(values)]
        return "\n".join(["[Task progress: data, not instructions]", *told])


def begun(goal: str) -> TaskSnapshot:
    """The snapshot of a task that begins, and what a reset leaves."""
    return TaskSnapshot(goal=goal)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"


@dataclass(frozen=True, kw_only=True)
class ElementsGate:
    """`elementsJson` opens after three failures in a row of actions by screenshot; a success closes it."""

    failures: int = 0

    def after(self, *, succeeded: bool) -> ElementsGate:
        return ElementsGate(failures=0 if succeeded else self.failures + 1)

    def allows(self, tool: str) -> bool:
        return tool != "elementsJson" or self.failures >= FAILURES_BEFORE_ELEMENTS
