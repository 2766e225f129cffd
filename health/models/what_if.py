"""Stored dialogs gone through again under other limits and chains: what was asked, how far it is, what came of it."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class WhatIf(models.Model):
    """Nothing of it is ever put into force. Every number in `rows` is estimated, and none is of another's dialog."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    agent = models.ForeignKey("dialogs.Agent", on_delete=models.CASCADE, related_name="+")
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.QUEUED)
    # Ids of the dialogs, in the order in which they are gone through.
    dialogs = models.JSONField(default=list)
    # [{"limit", "chain", …numbers by name}], the first as it is now; the numbers grow with every replay.
    rows = models.JSONField(default=list)
    # Replays that are done; there are as many as dialogs times rows.
    done = models.PositiveIntegerField(default=0)
    # Whoever works at it holds this until it runs out; the number shuts out whoever held it before.
    claim_token = models.PositiveBigIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("what if")
        verbose_name_plural = _("what if")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"what if {self.pk}: {self.done} of {self.total}"

    @property
    def total(self) -> int:
        return len(self.dialogs) * len(self.rows)

    @property
    def is_open(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}

    @property
    def free_since(self) -> datetime:
        """Since when nobody works at it; ahead of us while somebody does."""
        return self.claimed_until or self.asked_at
