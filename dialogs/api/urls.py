"""The addresses below `/v1/`. What is not there is answered in JSON too."""

from __future__ import annotations

from django.urls import path, re_path

from dialogs.api import views

urlpatterns = [
    path("models", views.models, name="api_models"),
    path("models/<path:model_id>", views.model, name="api_model"),
    path("chat/completions", views.chat_completions, name="api_chat_completions"),
    path("openapi.json", views.openapi, name="api_openapi"),
    re_path(r"^.*$", views.nothing),
]
