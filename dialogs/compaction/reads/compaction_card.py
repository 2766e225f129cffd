"""The card of a dialog's newest compaction, from its row: phase, bar, colour and badge; and its details: steps, sizes
and losses (all estimated). A person's display settings are applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import BigIntegerField, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import calm_words, in_words
from dialogs.compaction.facts import PINNED
from dialogs.compaction.reads.compaction import BY_ITSELF
from dialogs.compaction.reads.compaction_rows import phase, strategy_label
from dialogs.llms.guard import config_of, known_window
from dialogs.models import CompactionDisplay, Dialog, ViewChange
from dialogs.transcript.model_view import HANDOVER, lineage_of
from dialogs.transcript.reads.path import course_branch
from dominds.prepared import prepared
from health.compaction.config import RecoveryMode
from health.compaction.terms.pressure import Pressure, pressure
from health.configured import context_config
from health.models import CompactionRun

Status = CompactionRun.Status
INDETERMINATE = -1
# Phases whose card is red in any case.
IN_RECOVERY = frozenset({"recovery", "fresh_start", "handover", "bare", "failed"})
# Only these cards close by themselves: a recovery or a failure must be seen.
HIDE_BY_THEMSELVES = frozenset({"success", "undone"})
# How long a run that ended otherwise is shown, in its course. Its events and page stay.
NEWS_FOR = timedelta(hours=24)
# Steps of the engine's own, which are no strategies.
FRAME = frozenset({"detection", "recovery", "success"})
PREVIEW_CHARS = 1_200
MOST_LOSSES = 20


@dataclass(frozen=True, kw_only=True)
class Card:
    """`phase`, `progress`, `message` and `priority` are sent to pages; `progress` -1 is an indeterminate bar."""

    run: CompactionRun
    display: CompactionDisplay
    phase: str
    progress: int
    message: str
    tone: str
    badge: str
    icon: str
    spins: bool
    pulses: bool
    may_undo: bool
    details: CardDetails
    # Why nothing was done, below the message; empty where the message says it.
    reason: str

    @property
    def may_cancel(self) -> bool:
        return self.run.is_open and not self.run.cancel_requested

    @property
    def hides_after(self) -> int | None:
        """Seconds until the card closes; None where it stays until a person closes it."""
        return self.display.auto_hide_seconds if self.phase in HIDE_BY_THEMSELVES else None

    @property
    def is_over(self) -> bool:
        return not self.run.is_open and self.run.status != Status.DRAFT


def compaction_card(dialog: Dialog) -> Card | None:
    """The card of the newest run. None without a run, after it was shown long enough, or if the person wants no
    cards."""
    display = display_of(dialog.owner_id)
    run = _newest.first(dialog.pk) if display.show else None
    if run is None or _is_told(run, display) or _is_old(dialog, run):
        return None
    details = details_of(run)
    name = _phase(run, details)
    shown = phase(name)
    return Card(
        run=run,
        display=display,
        phase=name,
        progress=_progress(run, name),
        message=_message(run, name),
        tone=_tone(run, name, display),
        badge=_badge(run),
        icon=shown.icon,
        spins=shown.spins,
        pulses=shown.pulses,
        may_undo=run.status == Status.APPLIED and _holds(dialog, run),
        details=details,
        reason=_reason(run),
    )


def _holds(dialog: Dialog, run: CompactionRun) -> bool:
    branch = course_branch(dialog.current_leaf)
    return lineage_of(run.course, {message.pk for message in branch}).may_undo(run.pk)


@prepared(UUIDField())
def _newest(dialog_id: Any) -> QuerySet[CompactionRun]:
    """The newest run, with `moved_at`: when its view was last put into force or taken out of it."""
    changes = ViewChange.objects.filter(Q(before=OuterRef("pk")) | Q(after=OuterRef("pk"))).order_by("-id")
    runs = CompactionRun.objects.filter(dialog=dialog_id).select_related(
        "course", "dialog__agent", "dialog__llm__provider", "dialog__llm__bounds"
    )
    return runs.annotate(moved_at=Subquery(changes.values("changed_at")[:1])).order_by("-id")[:1]


def _is_told(run: CompactionRun, display: CompactionDisplay) -> bool:
    """Has its success been on the page for long enough? Before its details are read, which are long."""
    ended_at = getattr(run, "moved_at", None) or run.finished_at
    if ended_at is None or end_of(run) not in HIDE_BY_THEMSELVES:
        return False
    return timezone.now() > ended_at + timedelta(seconds=display.auto_hide_seconds)


def _is_old(dialog: Dialog, run: CompactionRun) -> bool:
    """Did it end a day ago, or in a course that has been left? What may still change is never old."""
    if run.is_open or run.status == Status.DRAFT:
        return False
    leaf = dialog.current_leaf
    if leaf is not None and leaf.course_id != run.course_id:
        return True
    ended_at = getattr(run, "moved_at", None) or run.finished_at
    return ended_at is not None and timezone.now() > ended_at + NEWS_FOR


def end_of(run: CompactionRun) -> str:
    """How the run ended, as a phase: an applied run was a success, a recovery or a truncation."""
    if run.status != Status.APPLIED:
        return run.status
    if run.recovered == "truncate":
        return "truncated"
    return "handover" if run.recovered or run.trigger == CompactionRun.Trigger.RESET else "success"


def _phase(run: CompactionRun, details: CardDetails) -> str:
    if run.is_open:
        return "cancelling" if run.cancel_requested else run.phase or "detection"
    end = end_of(run)
    return "bare" if end == "handover" and not details.preview else end


def _now(run: CompactionRun) -> int | None:
    """Estimated tokens that the model sees, as far as is known."""
    if run.status == Status.UNDONE:  # what it saw before, and all that was said since
        return max(run.estimated_before or 0, run.tokens_now or 0) or None
    return run.tokens_now if run.is_open or run.estimated_after is None else run.estimated_after


def _progress(run: CompactionRun, name: str) -> int:
    now = _now(run)
    if now is None or name == "recovery":
        return INDETERMINATE
    return min(100, int(now / run.limit_tokens * 100 + 0.5))


def _message(run: CompactionRun, name: str) -> str:
    if calm := _calm(run):
        return calm[0]
    shown = phase("recovery_by_truncation" if name == "recovery" and _truncates(run) else name)
    expected = run.steps[-1] if run.is_open and run.steps else {}
    if shown.expecting is not None and expected.get("is_running"):
        said = str(shown.expecting) % {
            "before": _brief(expected["estimated_before"]),
            "after": _brief(expected["estimated_after"]),
        }
        return " · ".join((said, *_expected_effort(expected)))
    return str(shown.message) % {"now": f"{_now(run) or 0:,}", "limit": f"{run.limit_tokens:,}"}


def _truncates(run: CompactionRun) -> bool:
    """Whether recovery drops the oldest messages, by the settings of this dialog."""
    return config_of(run.dialog).recovery_mode is RecoveryMode.TRUNCATE


def _expected_effort(step: Mapping[str, Any]) -> Iterator[str]:
    """How long a step is likely to take, and what it costs, where that is known."""
    if seconds := step.get("seconds"):
        if seconds < 90:
            yield _("likely ≈%(seconds)s s") % {"seconds": max(1, round(seconds))}
        else:
            yield _("likely ≈%(minutes)s min") % {"minutes": round(seconds / 60)}
    if (cost := step.get("cost")) is not None:
        yield _("prompt costs ≈%(cost)s") % {"cost": f"{cost:.2g}" if cost < 1 else f"{cost:.2f}"}


def _calm(run: CompactionRun) -> tuple[str, str] | None:
    return calm_words(run.why) if run.status == Status.SKIPPED else None


def _reason(run: CompactionRun) -> str:
    if run.is_open or run.status in (Status.APPLIED, Status.UNDONE, Status.DRAFT):
        return ""
    calm = _calm(run)
    return calm[1] if calm else in_words(run.told)


def _brief(tokens: int) -> str:
    """Short: 2100 -> "2.1k", 300 -> "300"."""
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}".removesuffix(".0") + "k"


def _tone(run: CompactionRun, name: str, display: CompactionDisplay) -> str:
    """The card's colour: recovery before warning before P1 before normal."""
    if name in IN_RECOVERY:
        return "recovery"
    if name == "skipped":
        return "normal"
    if name == "truncated" or _is_warning(run):
        return "warning"
    return "p1" if run.priority == 1 and display.highlight_p1 else "normal"


def _is_warning(run: CompactionRun) -> bool:
    """Above the threshold at which a compaction begins; before that is counted, the trigger says so."""
    now = _now(run)
    if now is None:
        return run.trigger in BY_ITSELF
    threshold = context_config().warning_threshold
    return pressure(now, limit=run.limit_tokens, warning_threshold=threshold) is not Pressure.NORMAL


def _badge(run: CompactionRun) -> str:
    """ "P1: To Do List"; nothing without a priority in the context."""
    if run.priority is None:
        return ""
    named = _("pinned") if run.priority_area == PINNED else run.priority_area
    area = named or {1: _("To Do List"), 2: _("Calendar")}.get(run.priority, "")
    return f"P{run.priority}: {area}" if area else f"P{run.priority}"


def display_of(user_id: int) -> CompactionDisplay:
    return _said_by.first(user_id) or CompactionDisplay(user_id=user_id)


@prepared(BigIntegerField())
def _said_by(user_id: Any) -> QuerySet[CompactionDisplay]:
    return CompactionDisplay.objects.filter(pk=user_id).order_by()


@dataclass(frozen=True, kw_only=True)
class StepLine:
    label: str
    before: int
    after: int
    changed: bool
    ms: float
    note: str


@dataclass(frozen=True, kw_only=True)
class CardDetails:
    """`losses` are the facts that only the archive still has, the first of `lost`; `preview` is empty without one. Of a
    run that was undone nothing `holds`: what it left out is seen again.

    `freed` are tokens, 0 where nothing is known of it, or nothing holds.
    """

    holds: bool
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


def details_of(run: CompactionRun) -> CardDetails:
    written = _written(run)
    read = Counter(row["extent"] for row in run.coverage)
    lost = [loss["text"] for loss in run.losses if not loss["kept"]]
    return CardDetails(
        holds=run.status != Status.UNDONE,
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
        window=known_window(run.dialog).window,
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
