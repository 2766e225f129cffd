"""Names the health app. Its checks of limits take values: the dialogs app runs them."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HealthConfig(AppConfig):
    name = "health"
    verbose_name = _("Health")
