"""Where a client's history is known already: the longest prefix of it that is stored, and in which dialog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
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
    if len(request.messages) < LEAST_KNOWN and not (request.chat or request.dialog_id):
        return Known(0, ())
    for end in range(len(request.messages), 0, -AT_ONCE):
        start = max(0, end - AT_ONCE)
        places = _places(owner, request.messages[start:end], request.dialog_id)
        for length in range(end, start, -1):
            found = places.get(request.messages[length - 1].prefix, ())
            meant = [message_id for message_id, chat in found if _is_meant(chat, request, length)]
            if meant:
                return Known(length, _messages(meant))
    return Known(0, ())


def _places(owner: User, messages: Sequence[ClientMessage], dialog_id: str) -> dict[str, list[tuple[int, str]]]:
    """By hash: the messages that end with it, newest first, with the client's name of their conversation."""
    hashes = [message.prefix for message in messages]
    rows = PrefixNode.objects.filter(owner=owner, sha256__in=hashes, message__dialog__trashed_at=None)
    if dialog_id:
        rows = rows.filter(message__dialog=UUID(dialog_id))
    found: dict[str, list[tuple[int, str]]] = {}
    columns = ("sha256", "message_id", "message__dialog__client__chat")
    for sha256, message_id, chat in sorted(rows.order_by().values_list(*columns), key=itemgetter(1), reverse=True):
        found.setdefault(sha256, []).append((message_id, chat))
    return found


def _messages(ids: Sequence[int]) -> tuple[Message, ...]:
    rows = Message.objects.select_related("dialog__client", "course").filter(pk__in=ids).order_by("-pk")
    return tuple(rows)


def _is_meant(chat: str, request: ClientRequest, length: int) -> bool:
    """Another chat of the same client is another dialog, however alike they begin."""
    if request.dialog_id:
        return True
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
    made = list(rows.select_related("reading", "message").order_by())
    if not made:
        return Outcome(generation=None)
    last = max(made, key=attrgetter("pk"))
    asked = ToolCall.objects.filter(message=last.message, status=ToolCall.Status.CLIENT) if last.message_id else ()
    calls = tuple(ClientCall(id=call.call_id, name=call.name, arguments=call.arguments) for call in asked)
    reading = getattr(last, "reading", None)
    return Outcome(generation=last, calls=calls, generations=len(made), level=reading.level if reading else "")
