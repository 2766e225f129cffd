"""How a person wants to see compactions."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class CompactionDisplay(models.Model):
    class Detail(models.TextChoices):
        MINIMAL = "minimal", _("Minimal")
        NORMAL = "normal", _("Normal")
        DETAILED = "detailed", _("Detailed")

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="compaction_display"
    )
    show = models.BooleanField(_("show compactions in the sidebar"), default=True)
    detail = models.CharField(_("detail"), max_length=20, choices=Detail, default=Detail.NORMAL)
    auto_hide_seconds = models.PositiveSmallIntegerField(
        _("hide after (seconds)"), default=3, validators=[MinValueValidator(1), MaxValueValidator(10)]
    )
    highlight_p1 = models.BooleanField(_("highlight P1"), default=True)
    # Show a summary before it is applied, with a countdown.
    review_drafts = models.BooleanField(_("review summaries before they are applied"), default=False)

    def __str__(self) -> str:
        return f"display of {self.user_id}"
