"""What will happen next as a context fills, and why: one sentence on the history, one on what the agent is asked."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.llms.guard import Guard, guard_of
from dialogs.llms.reads.providers import configured
from dialogs.llms.words import rounded, who_switched_off
from dialogs.models import Dialog
from dialogs.models.agent import WhenFull
from dialogs.transcript.reads.tool_calls import offers_notes
from dialogs.turns.reads.remediation_state import Spared, is_reminded_first, spared
from health.monitor.levels import context_window, thresholds

NOT_ASKED: dict[str, Promise] = {
    Spared.NO_TOOLS: gettext_lazy("This model does not use tools, so it is not asked to write reminders."),
    Spared.SWITCHED_OFF: gettext_lazy(
        "Dominds' own tools are switched off in this dialog, so the agent is not asked to write reminders."
    ),
    Spared.SMALL_ROOM: gettext_lazy(
        "The room is too small for tools that write reminders, so the agent is not asked for any."
    ),
    Spared.IN_VAIN: gettext_lazy("When it was asked last, the agent wrote no reminder, so it is not asked again."),
    Spared.CHOSEN: gettext_lazy("This agent is asked for nothing when its context fills: staff chose that."),
}


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
    if why := spared(dialog):
        return str(NOT_ASKED[why])
    asked_at = _asked_at(dialog, guard)
    if asked_at is None:
        return _("The agent is not asked to write reminders, as nobody knows how full its context is.")
    at = {"tokens": f"{asked_at:,}"}
    if not offers_notes(dialog):
        return _("Above %(tokens)s reported tokens a new course begins; no tools for reminders are offered.") % at
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
