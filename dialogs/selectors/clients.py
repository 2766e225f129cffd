"""Where a client's history is known already: the longest prefix of it that is stored, and in which dialog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.contrib.auth.models import User

from dialogs.clients import ClientCall, ClientMessage, ClientRequest
from dialogs.models import Dialog, Generation, Message, PrefixNode, ToolCall

# One message alone is no history: many conversations begin with the same word.
LEAST_KNOWN = 2
# Hashes looked for in one query; the end of a history is the likeliest part to be known.
AT_ONCE = 200


class Known(NamedTuple):
    """The first `length` messages of a request end with a stored message, in each of these dialogs, newest first."""

    length: int
    messages: tuple[Message, ...]


def longest_known(*, owner: User, request: ClientRequest) -> Known:
    for end in range(len(request.messages), 0, -AT_ONCE):
        start = max(0, end - AT_ONCE)
        nodes = _nodes(owner, request.messages[start:end], request.dialog_id)
        for length in range(end, start, -1):
            found = nodes.get(request.messages[length - 1].prefix, [])
            stored = tuple(message for message in found if _is_meant(message, request, length))
            if stored:
                return Known(length, stored)
    return Known(0, ())


def _nodes(owner: User, messages: Sequence[ClientMessage], dialog_id: str) -> dict[str, list[Message]]:
    hashes = [message.prefix for message in messages]
    rows = PrefixNode.objects.filter(owner=owner, sha256__in=hashes, message__dialog__trashed_at=None)
    if dialog_id:
        rows = rows.filter(message__dialog=UUID(dialog_id))
    found: dict[str, list[Message]] = {}
    for node in rows.select_related("message__dialog__client", "message__course").order_by("-message_id"):
        found.setdefault(node.sha256, []).append(node.message)
    return found


def _is_meant(message: Message, request: ClientRequest, length: int) -> bool:
    """Another chat of the same client is another dialog, however alike they begin."""
    if request.dialog_id:
        return True
    chat = message.dialog.client.chat
    if chat and request.chat:
        return chat == request.chat
    return length >= LEAST_KNOWN


def is_past_compacting(message: Message) -> bool:
    """Is the answer to it being written? Until then a compaction may be made, from which another request can gain."""
    running = Generation.objects.filter(prompt_leaf__dialog=message.dialog_id, status=Generation.Status.RUNNING)
    return running.exists()


def prefixes_of(messages: Iterable[Message]) -> dict[int, str]:
    """The hash under which each of these is known, by its id."""
    ids = [message.pk for message in messages]
    return dict(PrefixNode.objects.filter(message_id__in=ids).values_list("message_id", "sha256"))


def is_clients_dialog(*, owner: User, dialog_id: str) -> bool:
    """Is this the id of a client-driven dialog of this person's?"""
    try:
        wanted = UUID(dialog_id)
    except ValueError:
        return False
    return Dialog.objects.filter(pk=wanted, owner=owner, is_client_driven=True, trashed_at=None).exists()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a client's turn ended: its last generation, and the calls that are the client's to make."""

    generation: Generation | None
    calls: tuple[ClientCall, ...] = ()
    generations: int = 0
    level: str = ""


def outcome_of(leaf: Message) -> Outcome:
    """`leaf` is the newest message of the request: what came after it was made for this request."""
    rows = Generation.objects.filter(dialog=leaf.dialog_id, turn=leaf.turn, prompt_leaf__seq__gte=leaf.seq)
    made = list(rows.select_related("reading", "message").order_by("-pk"))
    if not made:
        return Outcome(generation=None)
    last = made[0]
    asked = ToolCall.objects.filter(message=last.message, status=ToolCall.Status.CLIENT) if last.message_id else ()
    calls = tuple(ClientCall(id=call.call_id, name=call.name, arguments=call.arguments) for call in asked)
    reading = getattr(last, "reading", None)
    return Outcome(generation=last, calls=calls, generations=len(made), level=reading.level if reading else "")
