"""The addresses below `/v1/`. What is not there is answered in JSON too."""

from __future__ import annotations

from django.urls import path, re_path

from dialogs.api import endpoints

urlpatterns = [
    path("models", endpoints.models, name="api_models"),
    path("models/<path:model_id>", endpoints.model, name="api_model"),
    path("chat/completions", endpoints.chat_completions, name="api_chat_completions"),
    path("tokens/count", endpoints.count_tokens, name="api_count_tokens"),
    path("openapi.json", endpoints.openapi, name="api_openapi"),
    re_path(r"^.*$", endpoints.nothing),
]
