"""What a compaction tells in the fold of its card: what it took, what it left, what was lost. Estimates all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dialogs.common.reasons import in_words
from dialogs.compaction.reads.compaction_phases import strategy_label
from dialogs.llms.guard import known_of
from dialogs.transcript.model_view import HANDOVER
from health.models import CompactionRun

# Steps of the engine's own, which are no strategies.
FRAME = frozenset({"detection", "recovery", "success"})
PREVIEW_CHARS = 1_200
MOST_LOSSES = 20


@dataclass(frozen=True, kw_only=True)
class StepLine:
    label: str
    before: int
    after: int
    changed: bool
    ms: float
    note: str


@dataclass(frozen=True, kw_only=True)
class Details:
    """`losses` are the facts that only the archive still has, the first of `lost`; `preview` is empty without one.

    `freed` are tokens, 0 where nothing is known of it, or nothing holds.
    """

    steps: tuple[StepLine, ...]
    freed: int
    discarded: int
    preview: str
    is_handover: bool
    in_full: int
    in_part: int
    not_at_all: int
    kept: int
    lost: int
    losses: tuple[str, ...]
    # The model's, where it is known; the run's limit is the room in it, or an admin's.
    window: int | None

    @property
    def used(self) -> tuple[StepLine, ...]:
        """Steps that made it shorter."""
        return tuple(step for step in self.steps if step.changed)

    @property
    def facts(self) -> int:
        return self.kept + self.lost


def details_of(run: CompactionRun) -> Details:
    written = _written(run)
    read = Counter(row["extent"] for row in run.coverage)
    lost = [loss["text"] for loss in run.losses if not loss["kept"]]
    return Details(
        steps=tuple(_steps(run)),
        freed=_freed(run),
        discarded=len(run.removed),
        preview=_shortened(written.get("content", "")),
        is_handover=written.get("kind") == HANDOVER,
        in_full=read["in full"],
        in_part=read["in part"],
        not_at_all=read["not at all"],
        kept=len(run.losses) - len(lost),
        lost=len(lost),
        losses=tuple(lost[:MOST_LOSSES]),
        window=known_of(run.dialog).window,
    )


def _freed(run: CompactionRun) -> int:
    """What is left after the first change is read again by a server that keeps what it has read, so never more."""
    if run.status != CompactionRun.Status.APPLIED or run.estimated_before is None or run.estimated_after is None:
        return 0
    return max(0, run.estimated_before - run.estimated_after)


def _written(run: CompactionRun) -> dict[str, Any]:
    """The handover, else the newest summary."""
    entries = {row["kind"]: row for row in run.view if row.get("kind") in {HANDOVER, "summary"}}
    return entries.get(HANDOVER) or entries.get("summary") or {}


def _shortened(text: str) -> str:
    return text if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS].rstrip()}…"


def _steps(run: CompactionRun) -> Iterator[StepLine]:
    for step in run.steps:
        if step["phase"] not in FRAME and not step.get("is_running"):
            yield StepLine(
                label=strategy_label(step["phase"]),
                before=step["estimated_before"],
                after=step["estimated_after"],
                changed=step["changed"],
                ms=step["ms"],
                note=in_words(step.get("why") or step["note"]),
            )
