"""What use has taught about the window of one LLM: the largest prompt it read, the smallest it refused, cuts."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from health.tokens.windows import Bounds

FIELDS = (
    *("accepted", "accepted_at", "refused", "refused_at", "words", "window", "named"),
    *("cut_sent", "cut_read", "cut_at", "suspicions", "reports_part"),
)


class LlmBounds(models.Model):
    """The columns are `health.tokens.windows.Bounds`, field by field. Without a row nothing is known."""

    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="bounds"
    )
    # Reported by the provider: prompt tokens.
    accepted = models.PositiveIntegerField(_("largest prompt read"), null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    # Estimated, unless the refusal named it: prompt and the answer that was asked for.
    refused = models.PositiveIntegerField(_("smallest request refused"), null=True, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)
    words = models.TextField(_("the server's words"), blank=True)
    # Named by a refusal: believed, and not believed yet.
    window = models.PositiveIntegerField(_("window that a refusal named"), null=True, blank=True)
    named = models.PositiveIntegerField(null=True, blank=True)
    # Estimated: what was sent when the server was found to cut; reported: the most that it read until then.
    cut_sent = models.PositiveIntegerField(null=True, blank=True)
    cut_read = models.PositiveIntegerField(null=True, blank=True)
    cut_at = models.DateTimeField(null=True, blank=True)
    suspicions = models.PositiveSmallIntegerField(default=0)
    reports_part = models.BooleanField(_("reports only part of the prompt"), default=False)

    class Meta:
        verbose_name = _("learned bounds of an LLM")
        verbose_name_plural = _("learned bounds of LLMs")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.llm_id})"

    @property
    def known(self) -> Bounds:
        return Bounds(**{name: getattr(self, name) for name in FIELDS})

    @known.setter
    def known(self, known: Bounds) -> None:
        for name in FIELDS:
            setattr(self, name, getattr(known, name))
