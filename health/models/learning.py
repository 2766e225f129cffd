"""Context events: what went wrong or nearly so, as codes; cleanup tasks for dialogs with many warnings; proposals for a
person to accept or decline; and replays of stored dialogs under other limits and chains.

No text of a dialog is stored here, and nothing here changes a setting. Refers to the dialogs' tables by string: this
app never imports that one.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ContextEvent(models.Model):
    """What went wrong or nearly so with a context."""

    class Code(models.TextChoices):
        TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED", _("the limit was exceeded")
        BREAKER_FAILED = "BREAKER_FAILED", _("compaction failed")
        RECOVERY_TRIGGERED = "RECOVERY_TRIGGERED", _("recovery was needed")
        PRUNER_FAILED = "PRUNER_FAILED", _("the pruning agent failed")
        # A request was estimated above the warning threshold, and above the limit itself (an over-hit).
        WARNING = "WARNING", _("the context was nearly full")
        OVER_HIT = "OVER_HIT", _("the context was over its limit")
        RUN_SKIPPED = "RUN_SKIPPED", _("a compaction had nothing to gain")
        PROVIDER_OVERFLOW = "PROVIDER_OVERFLOW", _("the provider refused the prompt")
        # About the model's window: learned from a refusal, and a prompt that the server cut.
        WINDOW_LEARNED = "WINDOW_LEARNED", _("the window was learned")
        PROMPT_CUT = "PROMPT_CUT", _("the server read only a part of the prompt")
        LOOP_DETECTED = "LOOP_DETECTED", _("the agent went round in circles")
        SLICE_FAILED = "SLICE_FAILED", _("a turn was ended because Dominds failed three times")
        OWNER_OFF = "OWNER_OFF", _("an autonomous run was paused: its owner's account is switched off")
        REPORTED = "REPORTED", _("a person reported it")

    code = models.CharField(_("code"), max_length=40, choices=Code)
    dialog = models.ForeignKey(
        "dialogs.Dialog", verbose_name=_("dialog"), on_delete=models.CASCADE, null=True, related_name="context_events"
    )
    run = models.ForeignKey(
        "health.CompactionRun",
        verbose_name=_("compaction run"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="events",
    )
    # The dialog's owner, stored here too because events are found and counted by it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_index=False,  # the indexes below begin with it
    )
    agent = models.ForeignKey(
        "dialogs.Agent", verbose_name=_("agent"), on_delete=models.SET_NULL, null=True, related_name="+"
    )
    llm = models.ForeignKey(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.SET_NULL, null=True, related_name="+"
    )
    estimated = models.PositiveIntegerField(_("estimated tokens"), null=True)
    limit = models.PositiveIntegerField(_("limit (tokens)"), null=True)
    # Numbers and names: {"estimated": …, "limit": …, "cause": …}.
    facts = models.JSONField(default=dict)
    happened_at = models.DateTimeField(_("happened at"), auto_now_add=True)

    class Meta:
        verbose_name = _("context event")
        verbose_name_plural = _("context events")
        ordering = ("-id",)
        indexes = [
            # For everybody's and a person's own counts by agent and LLM, from the index alone.
            models.Index(fields=["code", "happened_at", "agent", "llm"], name="context_event_counts"),
            models.Index(fields=["agent", "code", "happened_at"], name="context_event_agent"),
            models.Index(fields=["happened_at"], name="context_event_when"),
            # A person's own, the newest first.
            models.Index(fields=["owner", "-happened_at", "-id"], name="context_event_own"),
            models.Index(
                fields=["owner", "code", "-happened_at", "-id", "agent", "llm"], name="context_event_own_counts"
            ),
            models.Index(fields=["owner", "agent", "-happened_at", "-id"], name="context_event_own_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.happened_at:%Y-%m-%d %H:%M}"


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
    # The names of the checklist's steps that are done: pin, archive, limit, course.
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
    """A change of a limit or of the chain's order that the critic proposes, with its evidence."""

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
    # The agent whose limit it is; the chain is the same for all.
    agent = models.ForeignKey(
        "dialogs.Agent", verbose_name=_("agent"), on_delete=models.CASCADE, null=True, related_name="+"
    )
    llm = models.ForeignKey("dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, null=True, related_name="+")
    # {"limit": 5000} or {"chain": [names]}: in force at the time, proposed, and accepted.
    before = models.JSONField(_("before"), default=dict)
    after = models.JSONField(_("after"), default=dict)
    accepted = models.JSONField(_("accepted as"), default=dict, blank=True)
    # The events found and the replay's results: numbers by name, tokens are estimates.
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


class WhatIf(models.Model):
    """A replay of a person's own dialogs under other settings, which never come into force. Numbers are estimates."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    agent = models.ForeignKey("dialogs.Agent", on_delete=models.CASCADE, related_name="+")
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.QUEUED)
    # Ids of the dialogs, in the order of their replay.
    dialogs = models.JSONField(default=list)
    # [{"limit", "chain", …numbers by name}], the first with the present settings; each replay adds to the numbers.
    rows = models.JSONField(default=list)
    # Finished replays, of as many as dialogs times rows.
    done = models.PositiveIntegerField(default=0)
    # The worker's claim until it expires; the number shuts out the worker that held it before.
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
        """The time since which no worker has it; in the future while one does."""
        return self.claimed_until or self.asked_at
