"""What is odd about the limits of a model, as Django system checks. Ids `health.*`, each with a hint.

Takes values: who the model is, and when it is asked, the dialogs app decides.
"""

from __future__ import annotations

from django.core.checks import Warning as CheckWarning
from django.utils.translation import gettext as _

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
