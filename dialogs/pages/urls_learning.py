"""The pages about what goes wrong with contexts, and what is done about it."""

from __future__ import annotations

from django.urls import path

from dialogs.learning.views import events, insights, what_if
from dialogs.pages.views import cleanup

urlpatterns = [
    path("events/", events.events, name="events"),
    path("events/counts/", events.counts, name="events_counts"),
    path("events/export.csv", events.as_csv, name="events_csv"),
    path("events/export.json", events.as_json, name="events_json"),
    path("insights/", insights.insights, name="insights"),
    path("insights/chart/", insights.chart, name="insights_chart"),
    path("insights/what-if/", what_if.what_if, name="what_if"),
    path("insights/what-if/<int:what_if_id>/", what_if.shown, name="what_if_shown"),
    path("insights/what-if/<int:what_if_id>/cancel/", what_if.cancel, name="what_if_cancel"),
    path("cleanup/", cleanup.cleanup, name="cleanup"),
    path("cleanup/<int:task_id>/", cleanup.change, name="cleanup_change"),
]
