"""What is odd about the limits of a model or an agent, as Django system checks. Ids `health.*`, each with a hint.

Takes values: who the model is, and when it is asked, the dialogs app decides.
"""

from __future__ import annotations

from django.core.checks import Warning as CheckWarning
from django.utils.translation import gettext as _

from health.compaction.config import ContextConfig
from health.limits import EffectiveLimit
from health.monitor.levels import Configured, Thresholds, context_window, thresholds


def limit_warnings(name: str, configured: Configured) -> list[CheckWarning]:
    """None of these is an error: what an admin wrote is used as it is."""
    window = context_window(configured)
    if window is None:
        return [_window_unknown(name)]
    limits = thresholds(configured, window=window)
    found = [_beyond_window(name, limits, window)] if limits.critical_max_tokens > window else []
    return found + ([_no_caution(name, limits)] if limits.optimal_max_tokens >= limits.critical_max_tokens else [])


def _no_caution(name: str, limits: Thresholds) -> CheckWarning:
    numbers = {
        "name": name,
        "optimal": f"{limits.optimal_max_tokens:,}",
        "critical": f"{limits.critical_max_tokens:,}",
    }
    return CheckWarning(
        _("%(name)s can never reach caution: optimal %(optimal)s is not below critical %(critical)s.") % numbers,
        hint=_("Set optimal max tokens below critical, for example to three quarters of the window."),
        id="health.W001",
    )


def _beyond_window(name: str, limits: Thresholds, window: int) -> CheckWarning:
    numbers = {"name": name, "critical": f"{limits.critical_max_tokens:,}", "window": f"{window:,}"}
    return CheckWarning(
        _("%(name)s can never reach critical: %(critical)s is more than its window of %(window)s.") % numbers,
        hint=_("Lower critical max tokens, or leave it empty for nine tenths of the window."),
        id="health.W002",
    )


def _window_unknown(name: str) -> CheckWarning:
    return CheckWarning(
        _("The context window of %(name)s is not known, so its health stays unknown.") % {"name": name},
        hint=_("Run “Read limits now” in the admin, or set the context length by hand."),
        id="health.W003",
    )


def budget_warnings(name: str, uncapped: EffectiveLimit, *, window: int | None) -> list[CheckWarning]:
    """Warnings about an agent's effective limit, before the window caps it."""
    chosen, limit = uncapped.trace[0].tokens, uncapped.tokens
    numbers = {"name": name, "chosen": f"{chosen:,}", "limit": f"{limit:,}", "window": f"{window or 0:,}"}
    found = []
    if uncapped.trace[-1].what == "floor":
        words = _("The limit of %(name)s is %(chosen)s, below the floor: %(limit)s holds.") % numbers
        found.append(CheckWarning(words, hint=_("Raise the limit, or leave it empty."), id="health.W004"))
    if window is not None and limit > window:
        words = _("The limit of %(name)s is %(limit)s, more than its LLM's window of %(window)s.") % numbers
        hint = _("Lower the limit, or load the model with a larger context.")
        found.append(CheckWarning(words, hint=hint, id="health.W005"))
    return found


def type_warnings(name: str, limit_type: str, config: ContextConfig) -> list[CheckWarning]:
    """Warnings about an LLM whose limit type is not, or no longer, one of the compaction settings'."""
    if not limit_type or any(llm.type == limit_type for llm in config.per_llm):
        return []
    words = _("%(name)s has the limit type %(type)s, which the compaction settings do not know.")
    hint = _("Add the type there, or choose another: until then the default limit holds.")
    return [CheckWarning(words % {"name": name, "type": limit_type}, hint=hint, id="health.W006")]
