"""The address below one dialog where programs read the state of its context."""

from __future__ import annotations

from django.urls import path

from dialogs.views import context_state

urlpatterns = [
    path("context.json", context_state.as_json, name="dialog_context"),
]
