"""The addresses below one dialog where programs read the state of its context, and where too much is answered to."""

from __future__ import annotations

from django.urls import path

from dialogs.api.views import context_state
from dialogs.pages.views import cleanup

urlpatterns = [
    path("context.json", context_state.as_json, name="dialog_context"),
    path("context/stats", context_state.stats, name="context_stats"),
    path("context/snapshot", context_state.snapshot, name="context_snapshot"),
    path("context/messages", context_state.messages, name="context_messages"),
    path("report/", cleanup.report, name="dialog_report"),
    path("loop/dismiss/", cleanup.no_loop, name="loop_dismiss"),
    path("fresh-start/decline/", cleanup.no_fresh_start, name="fresh_start_decline"),
]
