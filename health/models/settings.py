"""What staff set for compaction: one row for all, and who changed it when. The values are `ContextConfig`'s."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ContextSettings(models.Model):
    """The only row has the key 1. `values` is what `compaction.configuration.dump` writes; empty: the defaults."""

    values = models.TextField(_("values"), blank=True)
    # Null: "Same as current agent".
    pruning_agent = models.ForeignKey(
        "dialogs.Agent",
        verbose_name=_("pruning agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    # Raised by every change, so that two editors notice each other.
    version = models.PositiveIntegerField(_("version"), default=1)

    class Meta:
        verbose_name = _("compaction settings")
        verbose_name_plural = _("compaction settings")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.version})"


class SettingsChange(models.Model):
    """The audit trail: one row for each key that a person changed."""

    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("changed by"), on_delete=models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(_("changed at"), auto_now_add=True)
    key = models.CharField(_("setting"), max_length=120)
    before = models.TextField(_("before"), blank=True)
    after = models.TextField(_("after"), blank=True)

    class Meta:
        verbose_name = _("settings change")
        verbose_name_plural = _("settings changes")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.key}: {self.before} → {self.after}"
