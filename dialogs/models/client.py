"""A conversation that a client drives through `/v1`: what it asks for, and how it is known again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from django.conf import settings
from django.db import models

from dialogs.models.message import Message, MessageOrigin

# In place of the id of a message that is not stored.
OWN = -1


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
    # {"first": what it has before that: ids of messages, and {"role", "content", "parts"} of a message of its own;
    # "shortened": ids of messages that it has in fewer words, or without images}. Empty where it has none.
    sends_otherwise = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"{self.model} by {self.api_key}"

    def sent(self, branch: Sequence[Message]) -> Sequence[Message]:
        """This branch as the client sends it: its first messages, its own, and the newest, some of them shortened."""
        if not (self.sends_after or self.sends_otherwise):
            return branch
        here = {message.pk: message for message in branch} | {message.pk: message for message in self.own}
        ids = (one if isinstance(one, int) else OWN for one in self.sends_otherwise.get("first", ()))
        first = [here[pk] for pk in ids if pk in here]
        newest = [message for message in branch if message.seq > self.sends_after]
        shortened = set(self.sends_otherwise.get("shortened", ()))
        return [_in_fewer_words(one) if one.pk in shortened else one for one in (*first, *newest)]

    @property
    def own(self) -> list[Message]:
        """What the client says in front that is no message of the conversation: one at the most."""
        said = (one for one in self.sends_otherwise.get("first", ()) if not isinstance(one, int))
        return [Message(pk=OWN, seq=0, origin=MessageOrigin.CLIENT, **one) for one in said]

    def left_out(self, branch: Mapping[int, int]) -> list[int]:
        """The ids of messages that the client sends no more, of these, whose numbers are given."""
        first = self.sends_otherwise.get("first", ())
        return [pk for pk, seq in branch.items() if seq <= self.sends_after and pk not in first]


def _in_fewer_words(message: Message) -> Message:
    """As the client sends it, and without its images."""
    found = copy(message)
    wire = {name: value for name, value in message.parts.get("wire", {}).items() if name != "content"}
    found.content, found.parts = message.parts.get("shortened", message.content), {**message.parts, "wire": wire}
    return found


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
