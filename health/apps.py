"""Names the health app. Its checks of limits take values; the dialogs app runs them."""

from __future__ import annotations

from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"
