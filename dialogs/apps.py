"""Names the dialogs app, and registers its system checks. Nothing else runs at import."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DialogsConfig(AppConfig):
    name = "dialogs"
    verbose_name = _("Dialogs")

    def ready(self) -> None:
        from dialogs import checks  # noqa: F401
