"""Messages. Rows are only added: an edit makes a sibling, a retry another answer.

`parent` makes a tree; `Dialog.current_leaf` chooses the branch that is shown and sent.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    USER = "user", _("user")
    ASSISTANT = "assistant", _("assistant")
    TOOL = "tool", _("tool")
    # Only in the middle of a client's history; those before its first turn are its instructions.
    SYSTEM = "system", _("system")


class MessageOrigin(models.TextChoices):
    """Who wrote a message. Remediation prompts, pushes and handovers have role user, but nobody typed them."""

    TYPED = "typed", _("typed")
    AGENT = "agent", _("agent")
    TOOL = "tool", _("tool")
    REMEDIATION = "remediation", _("remediation")
    HANDOVER = "handover", _("handover")
    # Inserted in autonomous mode: asks the agent to go on.
    PUSH = "push", _("push")
    # From a client's request: its user messages, and answers in its history that Dominds did not make.
    CLIENT = "client", _("client")
    # Asks the model to continue an answer that was cut off, after a compaction.
    CONTINUATION = "continuation", _("continuation")


# Origins of user messages that a person may have written.
BY_PEOPLE = (MessageOrigin.TYPED, MessageOrigin.CLIENT)
# Messages that the driver inserts by itself: only the newest of them is sent.
INSERTED = (MessageOrigin.REMEDIATION, MessageOrigin.PUSH, MessageOrigin.CONTINUATION)


class Message(models.Model):
    # No index of its own: the constraint below begins with it.
    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="messages", db_index=False)
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="messages")
    # Assigned under the dialog's row lock, so that order never depends on a clock.
    seq = models.PositiveIntegerField()
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    turn = models.PositiveIntegerField()
    role = models.CharField(max_length=20, choices=Role)
    origin = models.CharField(max_length=20, choices=MessageOrigin)
    content = models.TextField(blank=True)
    # Of an answer {"reasoning": str}. Of a tool's result {"tool_call_id": str, "withheld": what is sent in its place}.
    # Of a client's message {"wire": its content parts and name, with {"blob": sha256} in place of base64}, {"framed":
    # true} if the client puts it before every conversation, {"shortened": the shorter text that the client sends now}.
    parts = models.JSONField(default=dict, blank=True)
    # A person stopped the answer, or its stream broke off.
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
    """The search words of a message, as `dialogs.transcript.search` splits its text."""

    message = models.OneToOneField(
        "dialogs.Message", on_delete=models.CASCADE, primary_key=True, related_name="search_text"
    )
    # Each once, separated by blanks.
    words = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"words of message {self.message_id}"


class MessageMark(models.Model):
    """A person's mark on a message: pinned (or brought back), or a priority."""

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
