"""The messages of a client's history as rows, many at once; and what is known of an answer once it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialogs.attachments import large_texts, without_blobs
from dialogs.clients import ClientMessage
from dialogs.models import Course, Dialog, Message, PrefixNode, SearchText, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.search import index_words
from dialogs.services.generations import keep_blobs


def add_history(row: Dialog, messages: Sequence[ClientMessage], *, below: Message | None, course: Course) -> None:
    """Append what a client sends. Changes `row`, which the caller saves."""
    if not messages:
        return
    hashes = keep_blobs(text for message in messages for text in large_texts(message.wire))
    parent, rows = below, list[Message]()
    for message in messages:
        parent = row_of(row, course, message, parent, hashes)
        rows.append(parent)
    insert_branch(rows)
    said = list(zip(rows, messages, strict=True))
    _add_calls(said)
    _close_calls(row, said)
    SearchText.objects.bulk_create(
        SearchText(message=one, words=index_words(one.content, *(call.arguments for call in message.calls)))
        for one, message in said
    )
    PrefixNode.objects.bulk_create(
        PrefixNode(owner_id=row.owner_id, sha256=message.prefix, message=one) for one, message in said
    )
    row.current_leaf = rows[-1]


def row_of(
    row: Dialog, course: Course, said: ClientMessage, parent: Message | None, hashes: Mapping[str, str]
) -> Message:
    """As it is stored. Raises the dialog's `last_seq`."""
    row.last_seq += 1
    turn = parent.turn if parent else 0
    return Message(
        dialog=row,
        course=course,
        seq=row.last_seq,
        parent=parent,
        turn=turn + 1 if said.role == Role.USER else turn,
        role=said.role,
        origin=MessageOrigin.TOOL if said.role == Role.TOOL else MessageOrigin.CLIENT,
        content=said.text,
        parts=_parts(said, hashes),
    )


def _parts(said: ClientMessage, hashes: Mapping[str, str]) -> dict[str, Any]:
    wire = {"wire": without_blobs(said.wire, hashes)} if said.wire else {}
    return wire | ({"tool_call_id": said.tool_call_id} if said.role == Role.TOOL else {})


def insert_branch(rows: list[Message]) -> None:
    """Store rows of which each is the next one's parent. Parents have no id until then: they are set once all have."""
    parents = [row.parent for row in rows]
    first = rows[0].parent
    for row in rows:
        row.parent = first
    Message.objects.bulk_create(rows)
    for row, parent in zip(rows, parents, strict=True):
        row.parent = parent
    if len(rows) > 1:
        Message.objects.bulk_update(rows[1:], ["parent"], batch_size=500)


def _add_calls(said: Iterable[tuple[Message, ClientMessage]]) -> None:
    rows = [call for message, one in said for call in calls_of(message, one)]
    if rows:
        ToolCall.objects.bulk_create(rows)


def calls_of(message: Message, said: ClientMessage) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            message=message,
            position=position,
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            status=ToolCall.Status.CLIENT,
        )
        for position, call in enumerate(said.calls)
    )


def _close_calls(row: Dialog, said: Iterable[tuple[Message, ClientMessage]]) -> None:
    """The client's results, each beside the newest call that it answers."""
    for message, one in said:
        if one.role != Role.TOOL:
            continue
        open_calls = ToolCall.objects.filter(message__dialog=row, call_id=one.tool_call_id, result_message=None)
        call = open_calls.filter(message__seq__lt=message.seq).order_by("-message__seq").first()
        if call:
            call.result_message, call.status = message, ToolCall.Status.DONE
            call.save(update_fields=["result_message", "status"])


def remember(row: Dialog, *, message: Message, prefix: str) -> None:
    """Know a prefix again that ends with this message."""
    node = PrefixNode(owner_id=row.owner_id, sha256=prefix, message=message)
    PrefixNode.objects.bulk_create([node], ignore_conflicts=True)
