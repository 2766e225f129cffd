"""What the pruning agent decided about a dialog before a compaction needed it: at most one decision a dialog."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class PreparedPruning(models.Model):
    dialog = models.OneToOneField(
        "dialogs.Dialog",
        verbose_name=_("dialog"),
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="prepared_pruning",
    )
    # The compaction whose view it was shown; null: the course as it was said.
    head_run_id = models.PositiveBigIntegerField(null=True)
    # A digest of the settings, the limit and the models that it was made for.
    stamp = models.CharField(max_length=64)
    # {message id: digest}, and the agent's answers in order; none: it was asked in vain.
    shown = models.JSONField(default=dict)
    answers = models.JSONField(default=list)
    begun_at = models.DateTimeField(_("begun at"), default=timezone.now)
    # Whoever asks holds this until it runs out; null: it is over.
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("prepared pruning")
        verbose_name_plural = _("prepared prunings")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.dialog_id}"

    @property
    def is_under_way(self) -> bool:
        return self.claimed_until is not None and self.claimed_until > timezone.now()
