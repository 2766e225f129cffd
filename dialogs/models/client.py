"""A conversation that a client drives through `/v1`: what it asks for, and how it is known again."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class ClientConversation(models.Model):
    """What the newest request of a client-driven dialog asked for. Its messages are the dialog's."""

    dialog = models.OneToOneField("dialogs.Dialog", on_delete=models.CASCADE, primary_key=True, related_name="client")
    api_key = models.ForeignKey(
        "dialogs.ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    # The id under which the model was asked for.
    model = models.CharField(max_length=300)
    # The client's system and developer messages before its first turn, one after another.
    instructions = models.TextField(blank=True)
    # In OpenAI's function form, as the client sent them. They run in the client.
    tools = models.JSONField(default=list, blank=True)
    # Passed on to the provider: temperature, stop, tool_choice and the like.
    options = models.JSONField(default=dict, blank=True)
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True)
    offers_recall = models.BooleanField(default=False)
    # The chat's name in the client, where it says one (X-Dominds-Chat).
    chat = models.CharField(max_length=200, blank=True)
    # The newest request has what was said after the message with this `seq`; 0: the client left nothing out.
    sends_after = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.model} by {self.api_key}"


class PrefixNode(models.Model):
    """A prefix of a client's history, by the hash of all its messages, and the stored message where it ends.

    What a client resends is found again by the longest prefix that is here. One prefix may end in several dialogs:
    two requests that go on from it at the same time become two.
    """

    # The constraint below begins with it.
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    sha256 = models.CharField(max_length=64)
    message = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="prefix_nodes")

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=["owner", "sha256", "message"], name="prefix_node_once")]

    def __str__(self) -> str:
        return self.sha256[:12]
