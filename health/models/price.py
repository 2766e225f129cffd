"""What the prompt tokens of one LLM cost, as an admin has typed it. Nobody reads it from a server."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class LlmPrice(models.Model):
    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="price"
    )
    per_million = models.DecimalField(
        _("price of prompt tokens"),
        max_digits=12,
        decimal_places=4,
        validators=[MinValueValidator(0)],
        help_text=_("Of a million, in whatever currency you reckon."),
    )

    class Meta:
        verbose_name = _("price of an LLM")
        verbose_name_plural = _("prices of LLMs")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.llm_id})"
