"""The parts of a turn beside messages: generations, tool calls, questions to a person, remediation prompts.

Every call to a provider has a row, however it ended. A tool call is committed as running before it is made; after a
crash, one that may not run twice gets the result "interrupted" and is not run again.
"""

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

    # No indexes of their own: an index and the constraint below begin with these.
    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="generations", db_index=False)
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="generations", db_index=False)
    number = models.PositiveIntegerField()
    turn = models.PositiveIntegerField()
    # 1 for the first try of an answer, 2 and on for its retries after a provider failure.
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    llm = models.ForeignKey(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.SET_NULL, null=True, related_name="generations"
    )
    llm_name = models.CharField(_("name of the LLM"), max_length=300)
    # The message that is answered, and the answer.
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
    # Where Dominds refused, not the provider: the reason, {"code", "args", "text"}.
    why = models.JSONField(default=dict, blank=True)
    # When the next try after a failed one is due.
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
            # For the list of dialogs, which needs the newest reading of each.
            models.Index(fields=["dialog", "-id"], name="generation_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.course_id}/{self.number} {self.get_status_display()}"

    @property
    def told(self) -> dict[str, Any] | str:
        """Why it failed, for `dialogs.common.errors.in_words`."""
        return self.why or self.error_message


class Blob(models.Model):
    """Immutable text by its hash: instructions and other parts of a request that are not messages."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]


class ToolCall(models.Model):
    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        # A person has been asked and has not answered yet.
        WAITING = "waiting", _("waiting for you")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        INTERRUPTED = "interrupted", _("interrupted")
        # A person stopped it, or a new course began.
        WITHDRAWN = "withdrawn", _("withdrawn")

        # The client makes this call; its result comes with the next request, if at all.
        CLIENT = "client", _("made by the client")

    OPEN = (Status.PENDING, Status.RUNNING, Status.WAITING)

    # The assistant message with the call, and the call's position in it.
    message = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="calls")
    position = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    # The model's JSON text, valid or not.
    arguments = models.TextField(blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    # May be run again after a crash.
    idempotent = models.BooleanField(default=False)
    # The complete result, which the person can read even where it is withheld from the model. Its message is stored
    # once all calls of the round have ended.
    result = models.TextField(blank=True)
    result_message = models.OneToOneField(
        "dialogs.Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="result_of"
    )
    # After a temporary failure: the number of the present or next try, of how many, and when it is due.
    attempt = models.PositiveIntegerField(default=1)
    most_attempts = models.PositiveIntegerField(default=1)
    retry_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("message_id", "position")
        constraints = [models.UniqueConstraint(fields=["message", "position"], name="tool_call_position_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.status}"

    @property
    def is_open(self) -> bool:
        return self.status in self.OPEN


class Question(models.Model):
    """What the agent asks a person (Q4H). While one is pending, the dialog waits and uses no worker."""

    class Status(models.TextChoices):
        PENDING = "pending", _("waiting for an answer")
        ANSWERED = "answered", _("answered")
        WITHDRAWN = "withdrawn", _("withdrawn")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="questions")
    tool_call = models.OneToOneField(ToolCall, on_delete=models.CASCADE, related_name="question")
    text = models.TextField()
    # Short answers that the agent offers, each a button; may be empty.
    choices = models.JSONField(default=list, blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    answer = models.TextField(blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        indexes = [models.Index(fields=["dialog", "status"], name="question_pending")]

    def __str__(self) -> str:
        return f"question {self.pk} {self.status}"


class RemediationPrompt(models.Model):
    """A remediation prompt (an inserted message, or a notice in a typed one), and whether the agent followed it."""

    class Level(models.TextChoices):
        CAUTION = "caution", _("caution")
        CRITICAL = "critical", _("critical")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="remediation_prompts")
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="remediation_prompts")
    # The inserted message, or the typed one that carries the notice.
    message = models.OneToOneField("dialogs.Message", on_delete=models.CASCADE, related_name="remediation_prompt")
    level = models.CharField(max_length=20, choices=Level)
    # How many more prompts follow before an automatic new course; null in caution.
    remaining = models.PositiveSmallIntegerField(null=True, blank=True)
    # The text added to a typed message when it is sent; empty for an inserted message.
    notice = models.TextField(blank=True)
    # Did the agent write a reminder before the next prompt or the end of its answer? Null: not yet known.
    curated = models.BooleanField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.level} prompt on message {self.message_id}"
