"""What an agent asked a tool to do, and what it asked a person.

A call is committed as running before it is made: after a crash, what may not run twice is answered
"interrupted" and never run again.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class ToolCall(models.Model):
    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        # A person has been asked and has not answered yet.
        WAITING = "waiting", _("waiting for you")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        INTERRUPTED = "interrupted", _("interrupted")
        # A person stopped it, or it was overtaken by a new course.
        WITHDRAWN = "withdrawn", _("withdrawn")

        # It is the client's to make; its result comes with the next request, if at all.
        CLIENT = "client", _("made by the client")

    OPEN = (Status.PENDING, Status.RUNNING, Status.WAITING)

    # The assistant message that made the call, and the place of the call in it.
    message = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="calls")
    position = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    # The JSON text as the model wrote it, right or wrong.
    arguments = models.TextField(blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    # May be run again after a crash.
    idempotent = models.BooleanField(default=False)
    # Whole, and readable by the person even where it is withheld from the model. The message in the
    # transcript is made from it once all calls of the round are closed.
    result = models.TextField(blank=True)
    result_message = models.OneToOneField(
        "dialogs.Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="result_of"
    )
    # A tool that failed for the moment is tried again: which try this is or will be, of how many, and when.
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
