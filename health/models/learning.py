"""What overflow teaches: tasks for people who are warned often, and proposals that a person accepts or not.

Nothing here changes a setting by itself. Points at the dialogs' tables by string: this app never imports that one.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class CleanupTask(models.Model):
    """A dialog whose context was nearly full three times in an hour: somebody should look at it."""

    dialog = models.ForeignKey(
        "dialogs.Dialog", verbose_name=_("dialog"), on_delete=models.CASCADE, related_name="cleanup_tasks"
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("assigned to"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="cleanup_tasks",
    )
    # The names of the steps of the checklist that are done: pin, archive, limit, course.
    done = models.JSONField(_("done"), default=list, blank=True)
    opened_at = models.DateTimeField(_("opened"), auto_now_add=True)
    closed_at = models.DateTimeField(_("closed"), null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("closed by"), on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        verbose_name = _("context cleanup task")
        verbose_name_plural = _("context cleanup tasks")
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(closed_at=None), name="one_open_cleanup_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"cleanup of {self.dialog_id}"


class Proposal(models.Model):
    """A change of a limit or of a chain's order that the critic proposes, with what speaks for it."""

    class Kind(models.TextChoices):
        LIMIT = "limit", _("limit")
        CHAIN = "chain", _("order of the chain")

    class Status(models.TextChoices):
        OPEN = "open", _("open")
        ACCEPTED = "accepted", _("accepted")
        DISMISSED = "dismissed", _("dismissed")
        UNDONE = "undone", _("undone")

    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.OPEN)
    # Whose limit; the chain is one for all.
    agent = models.ForeignKey(
        "dialogs.Agent", verbose_name=_("agent"), on_delete=models.CASCADE, null=True, related_name="+"
    )
    llm = models.ForeignKey("dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, null=True, related_name="+")
    # {"limit": 5000} or {"chain": [names]}: in force when it was made, proposed, and in the end accepted.
    before = models.JSONField(_("before"), default=dict)
    after = models.JSONField(_("after"), default=dict)
    accepted = models.JSONField(_("accepted as"), default=dict, blank=True)
    # What was seen, and what the replay expects: numbers by name, estimated where they count tokens.
    evidence = models.JSONField(_("evidence"), default=dict)
    expected = models.JSONField(_("expected"), default=dict)
    made_at = models.DateTimeField(_("made"), auto_now_add=True)
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("decided by"), on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        verbose_name = _("proposal")
        verbose_name_plural = _("proposals")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.kind}: {self.before} → {self.after}"
