"""The pages about what goes wrong with contexts, and what is done about it."""

from __future__ import annotations

from django.urls import path

from dialogs.views import cleanup, events

urlpatterns = [
    path("events/", events.events, name="events"),
    path("events/export.csv", events.as_csv, name="events_csv"),
    path("events/export.json", events.as_json, name="events_json"),
    path("cleanup/", cleanup.cleanup, name="cleanup"),
    path("cleanup/<int:task_id>/", cleanup.change, name="cleanup_change"),
]
