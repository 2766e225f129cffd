"""Compactions: each run from its request on, the pruning agent's decisions made ahead, and the settings for all.

All tokens are estimates. A run never changes a message: its `view` says what the model sees instead.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from health.models.claims import holds

# The columns that the Insights page aggregates: a whole row is long.
FIGURES = ("status", "reward", "coherence", "estimated_before", "estimated_after")

# How exact a count of tokens is, in words.
GRADES = {
    "exact": _("exact: the model's own vocabulary"),
    "approximate": _("approximate: a related vocabulary"),
    "rough": _("rough: by characters"),
}


class CompactionRun(models.Model):
    class Trigger(models.TextChoices):
        PRE_REQUEST = "pre_request", _("before sending")
        TOOL_RESULT = "tool_result", _("a tool's result")
        STREAM = "stream", _("while answering")
        OVERFLOW = "overflow", _("the provider refused the prompt")
        MANUAL = "manual", _("by hand")
        RESET = "reset", _("reset by hand")
        # No compaction: a client sent a slightly changed history, and the view was kept for it.
        CARRIED = "carried", _("kept for a changed history")

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        # Made, and waits for a person to apply it: a preview, or a summary to be edited.
        DRAFT = "draft", _("draft")
        APPLIED = "applied", _("applied")
        SKIPPED = "skipped", _("skipped")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")
        UNDONE = "undone", _("undone")

    dialog = models.ForeignKey(
        "dialogs.Dialog", verbose_name=_("dialog"), on_delete=models.CASCADE, related_name="compaction_runs"
    )
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="compaction_runs")
    # The run whose view it was made from; null: from the uncompacted course.
    parent_run = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    # The end of the branch when it began; messages after it are appended to the view.
    leaf = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="+")
    turn = models.PositiveIntegerField()
    through_seq = models.PositiveIntegerField()
    trigger = models.CharField(_("trigger"), max_length=20, choices=Trigger)
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.QUEUED)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    # A person's instructions for the summary, and the message up to which to compact.
    focus = models.TextField(blank=True)
    up_to_seq = models.PositiveIntegerField(null=True, blank=True)
    # A draft until a person applies it, or until this time, when it is applied automatically.
    is_draft = models.BooleanField(default=False)
    draft_until = models.DateTimeField(null=True, blank=True)

    chain = models.JSONField(_("chain"), default=list)
    limit_tokens = models.PositiveIntegerField(_("limit in tokens"))
    reserve_tokens = models.PositiveIntegerField(_("tokens kept for the answer"), default=0)
    # Where the limit comes from: [{"what", "tokens", "source", "why"}].
    limit_trace = models.JSONField(default=list)

    # The worker's claim until it expires; the number shuts out the worker that held it before.
    claim_token = models.PositiveBigIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)

    # [{"phase", "before", "after", "changed", "note", "why", "ms"}], the newest last; `phase` is the present step.
    steps = models.JSONField(default=list)
    phase = models.CharField(max_length=40, blank=True)
    tokens_now = models.PositiveIntegerField(null=True, blank=True)
    # Shown beside the bar, as "P1: To Do List", while such a message is in the context.
    priority = models.PositiveSmallIntegerField(null=True, blank=True)
    priority_area = models.CharField(max_length=80, blank=True)

    estimated_before = models.PositiveIntegerField(null=True, blank=True)
    estimated_after = models.PositiveIntegerField(null=True, blank=True)
    messages_before = models.PositiveIntegerField(null=True, blank=True)
    messages_after = models.PositiveIntegerField(null=True, blank=True)
    counter = models.CharField(_("counted by"), max_length=60, blank=True)
    grade = models.CharField(_("how exact"), max_length=20, blank=True)
    embedder = models.CharField(_("embedder"), max_length=120, blank=True)
    coherence = models.FloatField(_("coherence"), null=True, blank=True)
    reward = models.FloatField(_("reward"), null=True, blank=True)
    recovered = models.CharField(_("recovered by"), max_length=20, blank=True)

    # Entries as `dialogs.transcript.model_view` reads them, oldest first.
    view = models.JSONField(default=list)
    # Ids of the messages that the view lacks, even in shortened form.
    removed = models.JSONField(default=list)
    # [{"message", "extent", "read", "total"}], [{"text", "kind", "message", "kept"}]
    coverage = models.JSONField(default=list)
    losses = models.JSONField(default=list)
    ledger = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    code = models.CharField(_("code"), max_length=40, blank=True)
    # How it ended: a sentence, and its reason {"code", "args", "text"}. Old runs have only the sentence.
    reason = models.TextField(blank=True)
    why = models.JSONField(default=dict, blank=True)

    queued_at = models.DateTimeField(_("queued at"), auto_now_add=True)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("compaction run")
        verbose_name_plural = _("compaction runs")
        ordering = ("id",)
        indexes = [
            models.Index(fields=["dialog", "status"], name="compaction_running"),
            models.Index(fields=["dialog", "queued_at", *FIGURES], name="compaction_figures"),
            models.Index(fields=["-queued_at", "-id", "dialog", *FIGURES], name="compaction_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"],
                condition=models.Q(status__in=("queued", "running")),
                name="one_compaction_per_dialog",
            )
        ]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}: {self.get_status_display()}"

    @property
    def told(self) -> dict[str, Any] | str:
        """How it ended, as `dialogs.common.errors.in_words` reads it."""
        return self.why or self.reason

    @property
    def is_open(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}

    @property
    def is_overdue(self) -> bool:
        """Whether its worker has not reported for so long that another may take the run."""
        return self.claimed_until is not None and not holds(self.claimed_until)

    @property
    def began_afresh(self) -> bool:
        """Whether it is a fresh start; `recovered` says that no strategy sufficed."""
        return self.trigger == self.Trigger.RESET and self.status == self.Status.APPLIED


class PreparedPruning(models.Model):
    dialog = models.OneToOneField(
        "dialogs.Dialog",
        verbose_name=_("dialog"),
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="prepared_pruning",
    )
    # The run whose view it was shown; null: the uncompacted course.
    head_run_id = models.PositiveBigIntegerField(null=True)
    # A digest of the settings, the limit and the models it is valid for.
    stamp = models.CharField(max_length=64)
    # {message id: digest}, and the agent's answers in order; none: it gave no usable answer.
    shown = models.JSONField(default=dict)
    answers = models.JSONField(default=list)
    begun_at = models.DateTimeField(_("begun at"), default=timezone.now)
    # The claim of the worker that asks the pruning agent, until it expires; null: the request has ended.
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("prepared pruning")
        verbose_name_plural = _("prepared prunings")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name}: {self.dialog_id}"

    @property
    def is_under_way(self) -> bool:
        return holds(self.claimed_until)


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
    # Incremented by every change, so that concurrent edits are noticed.
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
