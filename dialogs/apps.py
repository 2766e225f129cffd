"""Starts the dialogs app: its system checks. Nothing else runs at import."""

from __future__ import annotations

from django.apps import AppConfig


class DialogsConfig(AppConfig):
    name = "dialogs"

    def ready(self) -> None:
        from dialogs import checks  # noqa: F401
