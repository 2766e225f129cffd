"""The budget of the next request: its tokens by category, the source of its limit, what happens next as the context
fills, and the cost of Dominds' own tools.

All is estimated, except for the limit. It is shown beside the measured health bar, never mixed with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.agents.tools.registry import own_tools
from dialogs.context.estimate import estimate, next_context, offered_tools, overhead
from dialogs.context.reads import stable_prefix
from dialogs.llms.counter import calibration_of, counter_of
from dialogs.llms.guard import Guard, guard_of
from dialogs.llms.reads import configured
from dialogs.llms.windows import LearnedWindow, learned_window, lowered
from dialogs.llms.words import kept_in_dialog, rounded, who_switched_off
from dialogs.models import Dialog, Generation
from dialogs.models.agent import WhenFull
from dialogs.models.dialog import OwnTools
from dialogs.transcript.reads.tool_calls import offers_notes, offers_tools
from dialogs.turns.reads.remediation import NoPrompt, is_reminded_first, why_no_prompt
from health.compaction.terms.reasons import Reason
from health.limits import Term, output_reserve
from health.monitor.levels import context_window, thresholds
from health.tokens.calibration import Calibration
from health.tokens.families import family_name

RESERVE, FREE = "reserve", "free"
NOT_ASKED: dict[str, Promise] = {
    NoPrompt.NO_TOOLS: gettext_lazy("This model does not use tools, so it is not asked to write reminders."),
    NoPrompt.SWITCHED_OFF: gettext_lazy(
        "Dominds' own tools are switched off in this dialog, so the agent is not asked to write reminders."
    ),
    NoPrompt.SMALL_ROOM: gettext_lazy(
        "The room is too small for tools that write reminders, so the agent is not asked for any."
    ),
    NoPrompt.IN_VAIN: gettext_lazy("When it was asked last, the agent wrote no reminder, so it is not asked again."),
    NoPrompt.CHOSEN: gettext_lazy("This agent is asked for nothing when its context fills: staff chose that."),
}


@dataclass(frozen=True, kw_only=True)
class BudgetSlice:
    """One category, and its place on a bar of 1."""

    name: str
    tokens: int
    start: float
    width: float


@dataclass(frozen=True, kw_only=True)
class ReportedRequest:
    """The newest request with a report: the provider's tokens, and our estimate of them before."""

    reported: int
    estimated: int

    @property
    def remainder(self) -> int:
        """The tokens that belong to no category; below zero, those that the categories count too much."""
        return self.reported - self.estimated


@dataclass(frozen=True, kw_only=True)
class OwnToolsNow:
    """`tokens`: what a request saves without them. `share`: of the room, if that is known."""

    names: tuple[str, ...]
    tokens: int
    share: float | None
    choice: str
    # Not all of our tools are offered, to spare a small room.
    is_spared: bool
    # The LLM takes no tools, so there is nothing to choose.
    has_none: bool

    @property
    def percent(self) -> float | None:
        return None if self.share is None else 100 * self.share


@dataclass(frozen=True, kw_only=True)
class Budget:
    """`limit` None: no limit is set and no window is known. Not `is_guarded`: nothing is compacted by itself.

    `family` is the model's by its name, empty where that says nothing.

    The slices add up to the limit, or where it is exceeded to `limit + over`.
    """

    slices: tuple[BudgetSlice, ...]
    used: int
    reserve: int
    limit: int | None
    is_guarded: bool
    refused: Reason | None
    trace: tuple[Term, ...]
    counter: str
    grade: str
    family: str
    learned: Calibration | None
    stable_prefix: float | None
    kept: str
    next: tuple[str, ...]
    own_tools: OwnToolsNow
    learned_window: LearnedWindow | None
    lowered: tuple[int, int] | None
    accounted: ReportedRequest | None

    @property
    def free(self) -> int:
        return max(0, (self.limit or 0) - self.used - self.reserve)

    @property
    def over(self) -> int:
        return max(0, self.used + self.reserve - self.limit) if self.limit else 0


def budget(dialog: Dialog) -> Budget:
    guard, leaf = guard_of(dialog), dialog.current_leaf
    guessed = estimate(next_context(dialog), offered_tools(dialog), counter_of(dialog.llm))
    limit, reserve = _limit(dialog, guard)
    free = max(0, (limit or 0) - guessed.tokens - reserve)
    known = calibration_of(dialog.llm)
    return Budget(
        slices=_slices({**guessed.parts, RESERVE: reserve, FREE: free}),
        used=guessed.tokens,
        reserve=reserve,
        limit=limit,
        is_guarded=guard is not None and not guard.off,
        refused=guard.refused if guard else None,
        trace=guard.trace if guard else (),
        counter=guessed.counter,
        grade=str(guessed.grade),
        family=family_name(dialog.llm.model_id),
        learned=known if isinstance(known, Calibration) else None,
        stable_prefix=stable_prefix(leaf.course_id) if leaf else None,
        kept=kept_in_dialog(dialog),
        next=what_next(dialog, used=guessed.tokens),
        own_tools=own_tools_of(dialog),
        learned_window=learned_window(dialog.llm),
        lowered=lowered(Generation.objects.filter(dialog=dialog).order_by("-pk").first()),
        accounted=_accounted(dialog),
    )


def _limit(dialog: Dialog, guard: Guard | None) -> tuple[int | None, int]:
    """The guard's, else the window with room for the answer, if that is known."""
    if guard is not None:
        return guard.limit, guard.reserve
    window = dialog.llm.context_length or dialog.llm.input_length
    return window, output_reserve(window, requested=dialog.agent.max_output_tokens) if window else 0


def _slices(parts: dict[str, int]) -> tuple[BudgetSlice, ...]:
    """The categories as slices of the bar, each beginning where the one before ends."""
    total = max(1, sum(parts.values()))
    starts = accumulate(parts.values(), initial=0)
    return tuple(
        BudgetSlice(name=name, tokens=tokens, start=start / total, width=tokens / total)
        for (name, tokens), start in zip(parts.items(), starts, strict=False)
    )


def _accounted(dialog: Dialog) -> ReportedRequest | None:
    reported = Generation.objects.filter(dialog=dialog, llm=dialog.llm_id, prompt_tokens__isnull=False)
    newest = reported.order_by("-pk").values_list("prompt_tokens", "manifest").first()
    reported_tokens, manifest = newest or (None, {})
    if reported_tokens is None or not manifest.get("estimated"):
        return None
    return ReportedRequest(reported=reported_tokens, estimated=manifest["estimated"])


def what_next(dialog: Dialog, *, used: int) -> tuple[str, ...]:
    """`dialog` as `dialog_to_drive` reads it; `used` is the estimate of its next request."""
    guard = guard_of(dialog)
    return tuple(filter(None, (_of_history(dialog, guard, used), _of_agent(dialog, guard))))


def _of_history(dialog: Dialog, guard: Guard | None, used: int) -> str:
    if guard is None:
        return _("The window is unknown, so nothing is compacted by itself.")
    if guard.off:
        return _("Compaction is off %(who)s: what does not fit is refused.") % {"who": who_switched_off(dialog)}
    reminds = is_reminded_first(dialog) and not dialog.is_client_driven
    held = dialog.current_leaf is not None and dialog.current_leaf.course.guard_held
    at = {"tokens": rounded(guard.room if reminds or held else guard.begins_at)}
    if held:
        return _("You undid a compaction: until you write, it is compacted only above ≈%(tokens)s tokens.") % at
    if reminds:
        return _("The agent is reminded first: the history is compacted only above ≈%(tokens)s tokens.") % at
    if used > guard.begins_at:
        return _("The next request is above ≈%(tokens)s tokens: the history is compacted before it.") % at
    return _("At ≈%(tokens)s tokens the history is compacted.") % at


def _of_agent(dialog: Dialog, guard: Guard | None) -> str:
    if dialog.is_client_driven:
        return _("A client drives this conversation, so the agent is asked for nothing.")
    if why := why_no_prompt(dialog):
        return str(NOT_ASKED[why])
    asked_at = _asked_at(dialog, guard)
    if asked_at is None:
        return _("The agent is not asked to write reminders, as nobody knows how full its context is.")
    at = {"tokens": f"{asked_at:,}"}
    if not offers_notes(dialog):
        return _("Above %(tokens)s reported tokens a new course begins; the agent has no tools for reminders.") % at
    if guard and not guard.off and asked_at > guard.begins_at and dialog.agent.when_full == WhenFull.COMPACT:
        return _("That comes before the agent is asked to write reminders, at %(tokens)s reported tokens.") % at
    return _("Above %(tokens)s tokens, as the provider reports them, the agent is asked to write reminders.") % at


def _asked_at(dialog: Dialog, guard: Guard | None) -> int | None:
    """The ceiling that is reached first. Where compaction makes room, an agent is asked from half of a window on at the
    earliest, unless somebody wrote a ceiling down."""
    known = configured(dialog.llm)
    window = context_window(known)
    if window is None:
        return None
    limits = thresholds(known, window=window)
    optimal = limits.optimal_max_tokens
    if guard and not guard.off and not limits.optimal_configured and dialog.agent.when_full == WhenFull.COMPACT:
        optimal = max(optimal, window // 2)
    return min(optimal, limits.critical_max_tokens)


def own_tools_of(dialog: Dialog) -> OwnToolsNow:
    """`dialog` as `dialog_to_drive` reads it."""
    ours, guard = own_tools(dialog), guard_of(dialog)
    tokens = _cost(dialog, {tool.name for tool in ours})
    is_automatic = dialog.own_tools == OwnTools.AUTOMATIC and not dialog.is_client_driven
    return OwnToolsNow(
        names=tuple(tool.name for tool in ours),
        tokens=tokens,
        share=tokens / guard.room if guard and guard.room > 0 else None,
        choice=dialog.own_tools,
        is_spared=is_automatic and not offers_notes(dialog),
        has_none=not offers_tools(dialog.llm),
    )


def _cost(dialog: Dialog, names: set[str]) -> int:
    counter, offered = counter_of(dialog.llm), offered_tools(dialog)
    others = [tool for tool in offered if tool["function"]["name"] not in names]
    return overhead(dialog.llm, offered, counter) - overhead(dialog.llm, others, counter)
