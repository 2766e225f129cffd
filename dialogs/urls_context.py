"""The addresses below one dialog where programs read the state of its context, and where too much is answered to."""

from __future__ import annotations

from django.urls import path

from dialogs.views import cleanup, context_state

urlpatterns = [
    path("context.json", context_state.as_json, name="dialog_context"),
    path("context/stats", context_state.stats, name="context_stats"),
    path("context/snapshot", context_state.snapshot, name="context_snapshot"),
    path("report/", cleanup.report, name="dialog_report"),
    path("loop/dismiss/", cleanup.no_loop, name="loop_dismiss"),
    path("fresh-start/decline/", cleanup.no_fresh_start, name="fresh_start_decline"),
]
