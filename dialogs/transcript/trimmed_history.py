"""A branch as a client sends it that trims its own history: messages left out, shortened, or put in front.

`ClientConversation.sends_after` and `sends_otherwise` hold what its newest request did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from dialogs.models import Message
from dialogs.models.dialog import ClientConversation
from dialogs.models.message import MessageOrigin

# In place of the id of a message of the client's own, which is not stored.
NOT_STORED = -1


def is_trimmed(client: ClientConversation) -> bool:
    return bool(client.sends_after or client.sends_otherwise)


def sent_of(client: ClientConversation, branch: Sequence[Message]) -> Sequence[Message]:
    """The messages that the client sends of this branch: its first ones, its own, the newest; some are shortened."""
    if not is_trimmed(client):
        return branch
    here = {message.pk: message for message in (*branch, *own_messages(client))}
    ids = (one if isinstance(one, int) else NOT_STORED for one in _first(client))
    first = [here[pk] for pk in ids if pk in here]
    newest = [message for message in branch if message.seq > client.sends_after]
    shortened = set(shortened_ids(client))
    return [_shortened(one) if one.pk in shortened else one for one in (*first, *newest)]


def own_messages(client: ClientConversation) -> list[Message]:
    """The client's message in front that is not part of the conversation; at most one."""
    said = (one for one in _first(client) if not isinstance(one, int))
    return [Message(pk=NOT_STORED, seq=0, origin=MessageOrigin.CLIENT, **one) for one in said]


def shortened_ids(client: ClientConversation) -> Sequence[int]:
    """The ids of the messages that the client sends in fewer words, or without their images."""
    return client.sends_otherwise.get("shortened", ())


def left_out(client: ClientConversation, seqs: Mapping[int, int]) -> list[int]:
    """Of these messages (id to `seq`) the ids of those that the client no longer sends as they were said."""
    shortened, first = set(shortened_ids(client)), _first(client)
    return [pk for pk, seq in seqs.items() if pk in shortened or (seq <= client.sends_after and pk not in first)]


def _first(client: ClientConversation) -> Sequence[Any]:
    return client.sends_otherwise.get("first", ())


def _shortened(message: Message) -> Message:
    found = copy(message)
    wire = {name: value for name, value in message.parts.get("wire", {}).items() if name != "content"}
    found.content, found.parts = message.parts.get("shortened", message.content), {**message.parts, "wire": wire}
    return found
