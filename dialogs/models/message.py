"""What was said. Rows are only ever added: an edit makes a sibling, a retry another answer.

`parent` makes a tree, `Dialog.current_leaf` chooses the branch that is shown and sent.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    USER = "user", _("user")
    ASSISTANT = "assistant", _("assistant")
    TOOL = "tool", _("tool")
    # Only in the middle of a client's history; what stands before its first turn are its instructions.
    SYSTEM = "system", _("system")


class MessageOrigin(models.TextChoices):
    """Who made a message. Remediation prompts, pushes and a course's opening are role user, but nobody typed them."""

    TYPED = "typed", _("typed")
    AGENT = "agent", _("agent")
    TOOL = "tool", _("tool")
    REMEDIATION = "remediation", _("remediation")
    HANDOVER = "handover", _("handover")
    # Inserted in autonomous mode, to go on.
    PUSH = "push", _("push")
    # Came with a client's request and was no answer of ours: its own user messages, and history that it brought along.
    CLIENT = "client", _("client")
    # Asks the model to go on with an answer that was cut in the middle, after a compaction.
    CONTINUATION = "continuation", _("continuation")


# Whose user messages a person may have written.
BY_PEOPLE = (MessageOrigin.TYPED, MessageOrigin.CLIENT)
# Messages that the driver inserts of its own accord: the model is sent only the newest of them.
INSERTED = (MessageOrigin.REMEDIATION, MessageOrigin.PUSH, MessageOrigin.CONTINUATION)


class Message(models.Model):
    # The constraint below begins with it: an index of its own would only be written to.
    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="messages", db_index=False)
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="messages")
    # Assigned under the dialog's row lock, so that order never depends on a clock.
    seq = models.PositiveIntegerField()
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    turn = models.PositiveIntegerField()
    role = models.CharField(max_length=20, choices=Role)
    origin = models.CharField(max_length=20, choices=MessageOrigin)
    content = models.TextField(blank=True)
    # {"reasoning": str} of an answer; {"tool_call_id": str, "withheld": str} of a tool's result: what is sent instead;
    # {"wire": {...}} of a client's message: its content parts and name, with {"blob": sha256} in place of base64;
    # {"framed": true} of one that the client puts before every conversation: nobody's words; {"shortened": str}: what
    # the client sends in place of its text, where its conversation names it as shortened.
    parts = models.JSONField(default=dict, blank=True)
    # True when a person stopped the answer, or its stream broke, before the model had finished.
    cut_short = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("seq",)
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="message_seq_once")]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class QueuedMessage(models.Model):
    """A message typed while a turn was running. It becomes a Message when its own turn begins."""

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="queued")
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"queued {self.pk}"


class SearchText(models.Model):
    """The words of a message, as `dialogs.transcript.search` cuts them: a search looks through these, not the text."""

    message = models.OneToOneField(
        "dialogs.Message", on_delete=models.CASCADE, primary_key=True, related_name="search_text"
    )
    # Each once, with a blank between.
    words = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"words of message {self.message_id}"


class MessageMark(models.Model):
    """What a person said about a message: pinned, a priority, or brought back."""

    class Priority(models.IntegerChoices):
        P1 = 1, "P1"
        P2 = 2, "P2"
        P3 = 3, "P3"

    message = models.OneToOneField("dialogs.Message", on_delete=models.CASCADE, related_name="mark")
    pinned = models.BooleanField(default=False)
    priority = models.PositiveSmallIntegerField(null=True, blank=True, choices=Priority)
    # The area that has the priority: "To Do List", "Calendar", or a name of the person's own.
    area = models.CharField(_("area"), max_length=80, blank=True)
    marked_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.message_id}: P{self.priority or '-'}{' pinned' if self.pinned else ''}"
