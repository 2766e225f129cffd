"""One call to a provider and what came back. Failed, stopped and interrupted calls are rows too."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class Generation(models.Model):
    class Status(models.TextChoices):
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")
        # The worker died: what it had received is kept here, and the turn begins again.
        INTERRUPTED = "interrupted", _("interrupted")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="generations")
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="generations")
    number = models.PositiveIntegerField()
    turn = models.PositiveIntegerField()
    # 1 for the first try of an answer, 2 and on for its retries after a provider failure.
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    llm = models.ForeignKey(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.SET_NULL, null=True, related_name="generations"
    )
    llm_name = models.CharField(_("name of the LLM"), max_length=300)
    # The message that it answers, and the message that it became.
    prompt_leaf = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="answers")
    message = models.OneToOneField(
        "dialogs.Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="generation"
    )
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.RUNNING)
    fencing_token = models.PositiveBigIntegerField()
    # What was sent: {"messages": [ids], "instructions": sha256, "options": {...}}.
    manifest = models.JSONField(default=dict)

    # Text received so far, flushed about once a second; `stream_seq` counts the flushed states.
    partial_text = models.TextField(blank=True)
    partial_reasoning = models.TextField(blank=True)
    stream_seq = models.PositiveBigIntegerField(default=0)

    # The provider's own numbers; null when it did not report them. Never estimated.
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), null=True, blank=True)
    total_tokens = models.PositiveIntegerField(_("total tokens"), null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(_("cached tokens"), null=True, blank=True)
    usage_raw = models.JSONField(null=True, blank=True)

    finish_reason = models.CharField(_("finish reason"), max_length=60, blank=True)
    error_code = models.CharField(_("error code"), max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    # Where no provider said it but we: the reason that the message says, {"code", "args", "text"}.
    why = models.JSONField(default=dict, blank=True)
    # When a failed try will be followed by another: the moment at which it is due.
    retry_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(_("started at"), auto_now_add=True)
    first_token_at = models.DateTimeField(_("first token at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("generation")
        verbose_name_plural = _("generations")
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=["course", "number"], name="generation_number_once")]
        indexes = [
            models.Index(fields=["dialog", "status"], name="generation_running"),
            # For the list of dialogs, which asks each for its newest reading: else those of all are walked through.
            models.Index(fields=["dialog", "-id"], name="generation_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.course_id}/{self.number} {self.status}"

    @property
    def told(self) -> dict[str, Any] | str:
        """Why it failed, as `dialogs.common.reasons.in_words` reads it."""
        return self.why or self.error_message


class Blob(models.Model):
    """Immutable text by its hash: instructions and other parts of a request that are not messages."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]
