"""The rows of compactions between messages: progress or result; and the texts of a run's phases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.models import BigIntegerField, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dialogs.common.errors import calm_words
from dialogs.compaction.reads.compaction import BY_ITSELF
from dialogs.llms.guard import active_guard
from dialogs.models import Course
from dialogs.transcript.model_view import Lineage, load
from dominds.prepared import Many, prepared
from health.compaction.strategies import TEXTS
from health.compaction.terms.reasons import Reason, Why, from_json
from health.compaction.terms.registry import StrategyTexts
from health.models import CompactionRun

Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
# Long columns: deferred, as only the run's own page shows them.
HEAVY = ("view", "removed", "coverage", "losses", "ledger", "limit_trace")
TITLES: dict[str, Promise] = {
    "running": _("Compacting…"),
    "guarding": _("Compacting conversation history..."),
    "continued": _("Context compacted, continuing..."),
    "applied": _("Context compacted"),
    "recovered": _("Started afresh: the agent goes on from a handover"),
    "reset": _("Agent chat reset: the agent goes on from a handover"),
    "truncated": _("Oldest messages left out"),
    "brought": _("Brought back into the context"),
    "carried": _("Kept as compacted; the client changed its history"),
    "draft": _("Preview of a compaction, not applied yet"),
    "skipped": _("Compaction skipped"),
    "failed": _("Compaction failed"),
    "cancelled": _("Compaction cancelled"),
    "undone": _("Compaction undone"),
}
ADVICE: dict[str, Promise] = {
    "recovered": _("The limit could not be kept otherwise. Bring back what the agent needs, or undo."),
    "truncated": _("The limit could not be kept otherwise. Bring back what the agent needs, or undo."),
    "draft": _("The model still sees everything. Read what it would see instead, change the words, then decide."),
    "reviewed": _("The request waits for it. Read what the model would see instead, change the words, then decide."),
    "failed": _("The messages are unchanged. Unpin some, raise the limit, or reset the agent's chat."),
    "cancelled": _("The messages are unchanged."),
    "held": _(
        "The model sees again what it saw before, and all that was said since. Your next message will compact it again."
    ),
    "undone": _("The model sees again what it saw before, and all that was said since."),
}


@dataclass(frozen=True)
class ViewText:
    """A text that compaction wrote (summary, placeholder, handover), with its place in the view."""

    place: int
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CompactionRow:
    """`is_current`: it stands in the course that goes on, where something can be done about it.

    `comes_again`: the guard made it, a person undid it, and the guard waits for nothing but their next message.
    """

    kind: ClassVar[str] = "compaction"
    run: CompactionRun
    is_current: bool = False
    can_undo: bool = False
    can_redo: bool = False
    comes_again: bool = False

    @property
    def dom_id(self) -> str:
        return f"divider-{self.run.pk}"

    @property
    def key(self) -> str:
        run = self.run
        progress = f"{run.status}/{run.tokens_now}/{run.cancel_requested}/{run.estimated_after}/{run.draft_until}"
        return f"{progress}/{self.is_current}/{self.can_undo}/{self.can_redo}/{self.comes_again}"

    @property
    def state(self) -> str:
        """The row's kind, a key of `TITLES`."""
        if self.run.is_open:
            return "guarding" if self.is_by_itself else "running"
        return self._kind_of_success if self.run.status == Status.APPLIED else str(self.run.status)

    @property
    def _kind_of_success(self) -> str:
        if self.run.trigger == Trigger.MANUAL and not self.run.chain:
            # `dialogs.compaction.writes.manual_compaction` makes a view without compacting anything.
            return "brought"
        if self.run.trigger == Trigger.CARRIED:
            return "carried"
        if self.run.trigger == Trigger.RESET:
            return "reset"
        if self.run.recovered:
            return "truncated" if self.run.recovered == "truncate" else "recovered"
        return "continued" if self.run.trigger == Trigger.STREAM else "applied"

    @property
    def is_by_itself(self) -> bool:
        return self.run.trigger in BY_ITSELF

    @property
    def is_thin(self) -> bool:
        """Whether the row is drawn thin: nobody has to do anything about the run, and its row must not part one answer
        in two."""
        return self.state in {"continued", "carried"} or (
            self.state == "skipped" and (self.is_by_itself or self._calm is not None)
        )

    @property
    def title(self) -> Promise | str:
        calm = self._calm
        return calm[0] if calm else TITLES[self.state]

    @property
    def calm(self) -> str:
        """The text below the line of a run that nobody needed."""
        return self._calm[1] if self._calm else ""

    @property
    def _calm(self) -> tuple[str, str] | None:
        return calm_words(self.run.why) if self.run.status == Status.SKIPPED else None

    @property
    def advice(self) -> Promise | str:
        """What to do, or what holds now: said while it is true."""
        if self.state == "draft" and self.is_by_itself:
            return ADVICE["reviewed"]
        if self.comes_again:
            return ADVICE["held"]
        is_over = self.state in {"recovered", "truncated", "undone"} and not (self.can_undo or self.can_redo)
        return "" if is_over else ADVICE.get(self.state, "")

    @property
    def has_view(self) -> bool:
        """Whether the run made a view, in force or not."""
        return self.run.status in {Status.APPLIED, Status.DRAFT, Status.UNDONE}

    @property
    def has_sizes(self) -> bool:
        return self.has_view and self.run.estimated_after is not None

    @property
    def has_reason(self) -> bool:
        """Whether the row tells a reason: for a run that came to nothing. Of other runs the numbers tell enough."""
        return (
            bool(self.run.reason)
            and self._calm is None
            and self.run.status in {Status.SKIPPED, Status.FAILED, Status.CANCELLED}
        )

    @property
    def written(self) -> tuple[ViewText, ...]:
        return view_texts(self.run)


def view_texts(run: CompactionRun) -> tuple[ViewText, ...]:
    """Summaries, placeholders and handovers that stand for messages in the view it made."""
    entries = enumerate(load(run.view))
    return tuple(ViewText(at, entry.kind, entry.content or "") for at, entry in entries if entry.message_id is None)


def compaction_rows(course: Course | None, shown: Collection[int], lineage: Lineage | None) -> list[CompactionRow]:
    """The rows of the runs that began after one of these messages, oldest first. `lineage` is that of the current
    course.
    """
    if course is None or not shown:
        return []
    is_held = lineage is not None and course.guard_held and active_guard(course.dialog) is not None
    rows = []
    for run in _without_repeats(_begun_after(course.pk, shown)):
        can_redo = lineage is not None and run.status == Status.UNDONE and lineage.may_redo(run.pk)
        rows.append(
            CompactionRow(
                run=run,
                is_current=lineage is not None,
                can_undo=lineage is not None and lineage.may_undo(run.pk),
                can_redo=can_redo,
                comes_again=is_held and can_redo and run.trigger in BY_ITSELF,
            )
        )
    return rows


def _without_repeats(runs: Iterable[CompactionRun]) -> Iterator[CompactionRun]:
    """The runs, without those that only say again that compaction cannot free more: with the same limit, and of about
    as many tokens that must stay."""
    said = None
    for run in runs:
        now = _stuck(run)
        if now and said and now[:2] == said[:2] and abs(now[2] - said[2]) < run.limit_tokens / 10:
            continue
        said = now or said
        yield run


def _stuck(run: CompactionRun) -> tuple[int, Why, int] | None:
    """Of a run that says that compaction cannot free more: its limit, why, and the tokens that must stay."""
    told = from_json(run.why) if run.status == Status.SKIPPED else None
    why = told.args.get("why") if told and told.why is Why.STUCK else None
    if not isinstance(why, Reason):
        return None
    needed = why.args.get("needed")
    return run.limit_tokens, why.why, needed if isinstance(needed, int) else 0


@prepared(BigIntegerField(), Many(BigIntegerField()))
def _begun_after(course_id: Any, ids: Any) -> QuerySet[CompactionRun]:
    return CompactionRun.objects.filter(course=course_id, leaf_id__in=ids).defer(*HEAVY).order_by("id")


# Icon and message by a run's `phase`: the strategy at work (its texts are in the strategy's file), or how the run
# ended.


@dataclass(frozen=True, kw_only=True)
class Phase:
    """`icon` is a symbol of static/icons.svg; `label`, `choice` and `expecting` are those of a strategy."""

    icon: str
    message: Promise
    label: Promise | str = ""
    choice: Promise | str = ""
    expecting: Promise | None = None
    spins: bool = False
    pulses: bool = False


def _of_strategy(texts: StrategyTexts) -> Phase:
    return Phase(
        icon=texts.icon,
        label=_(texts.label),
        choice=_(texts.choice),
        message=_(texts.message),
        expecting=_(texts.expecting) if texts.expecting else None,
        pulses=texts.pulses,
    )


PHASES: Mapping[str, Phase] = {
    **{name: _of_strategy(texts) for name, texts in TEXTS.items()},
    "detection": Phase(icon="sync", message=_("Checking context length…"), spins=True),
    "shortening": Phase(
        icon="cut", label=_("Shorten what must stay"), message=_("Shortening what must stay and does not fit…")
    ),
    "fresh_start": Phase(
        icon="refresh", label=_("Fresh start"), message=_("Starting fresh conversation…"), pulses=True
    ),
    "recovery": Phase(
        icon="refresh", label=_("Recovery"), message=_("Overflow detected – starting fresh conversation"), pulses=True
    ),
    "recovery_by_truncation": Phase(icon="cut", message=_("Overflow detected – dropping the oldest messages")),
    "handover": Phase(icon="sync-complete", label=_("Handover"), message=_("Resumed from summary. Continuing task…")),
    # How a run ends.
    "success": Phase(icon="check", message=_("Context reduced to %(now)s / %(limit)s tokens")),
    "truncated": Phase(icon="cut", message=_("Oldest messages dropped: %(now)s / %(limit)s tokens")),
    "bare": Phase(icon="refresh", message=_("Only what must stay is left: %(now)s / %(limit)s tokens")),
    "draft": Phase(icon="pencil", message=_("Ready for your review: %(now)s / %(limit)s tokens")),
    "skipped": Phase(icon="skip", message=_("Nothing was compacted")),
    "failed": Phase(icon="alert", message=_("Compaction failed. Nothing was changed.")),
    "cancelling": Phase(icon="sync", message=_("Cancelling…"), spins=True),
    "cancelled": Phase(icon="close", message=_("Compaction cancelled. Nothing was changed.")),
    "undone": Phase(icon="restore", message=_("Compaction undone. The model sees the earlier context again.")),
}


def phase(name: str) -> Phase:
    """The phase's texts; for an unknown strategy general ones."""
    return PHASES.get(name, PHASES["detection"])


def strategy_label(name: str) -> str:
    return str(phase(name).label) or name
