"""Starts the health app: its system checks. Nothing else runs at import."""

from __future__ import annotations

from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"

    def ready(self) -> None:
        from health import checks  # noqa: F401
