"""The branch of a dialog that is shown and sent: from the first message down to a leaf."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, PositiveIntegerField, QuerySet, UUIDField
from django.db.models.base import ModelState
from django.db.models.signals import post_init

from dialogs.models import Message
from dialogs.models.message import MessageOrigin, Role
from dominds.prepared import Many, prepared
from health.models import CompactionRun


def upward(at: int | None, parents: Mapping[int, int | None]) -> Iterator[int]:
    """The ids from this message towards the root, as far as their parents are known."""
    while at is not None and at in parents:
        yield at
        at = parents[at]


@dataclass(frozen=True)
class Tree:
    """The ids of a dialog's messages, by parent. No texts are read."""

    parents: dict[int, int | None]
    children: dict[int | None, tuple[int, ...]]

    def path(self, leaf: int | None) -> tuple[int, ...]:
        """Message ids from the root to `leaf`."""
        return tuple(upward(leaf, self.parents))[::-1]

    def siblings(self, message_id: int) -> tuple[int, ...]:
        """All versions of one message, itself included, oldest first."""
        return self.children[self.parents[message_id]]


def read_tree(dialog_id: UUID) -> Tree:
    pairs = Message.objects.filter(dialog_id=dialog_id).order_by("seq").values_list("id", "parent_id")
    parents: dict[int, int | None] = dict(pairs.iterator())
    children: defaultdict[int | None, list[int]] = defaultdict(list)
    for message_id, parent_id in parents.items():
        children[parent_id].append(message_id)
    return Tree(parents, {parent: tuple(ids) for parent, ids in children.items()})


def messages_by_id(ids: Iterable[int]) -> tuple[Message, ...]:
    """These messages in this order."""
    wanted = tuple(ids)
    found = Message.objects.in_bulk(wanted)
    return tuple(found[message_id] for message_id in wanted)


# The columns that are read where many messages are read.
_COLUMNS = (
    *("id", "course_id", "seq", "parent_id", "turn", "role", "origin"),
    *("content", "parts", "cut_short", "created_at"),
)


def messages_with_ids(ids: Sequence[int], leaf: Message) -> Iterator[Message]:
    """These messages of the leaf's dialog, in any order. Faster than Django's way, which for hundreds of rows takes
    most of a request's time."""
    yield from _made(_those(ids), leaf)


@prepared(Many(BigIntegerField()))
def _those(ids: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(pk__in=ids).order_by().values_list(*_COLUMNS)


@prepared(BigIntegerField())
def _of_course(course_id: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(course_id=course_id).order_by().values_list(*_COLUMNS)


def _made(rows: Iterable[tuple[Any, ...]], leaf: Message) -> Iterator[Message]:
    for values in rows:
        message = Message.__new__(Message)
        message.__dict__ |= {**dict(zip(_COLUMNS, values, strict=True)), "dialog_id": leaf.dialog_id}
        message._state = ModelState()
        message._state.adding, message._state.db = False, leaf._state.db
        post_init.send(sender=Message, instance=message)
        yield message


def course_branch(leaf: Message | None) -> tuple[Message, ...]:
    """The messages of the leaf's course on its branch, oldest first. The cost grows with the course only."""
    if leaf is None:
        return ()
    found = {message.id: message for message in _made(_of_course(leaf.course_id), leaf)}
    branch: list[Message] = []
    at: int | None = leaf.pk
    while at in found:
        branch.append(found[at])
        at = found[at].parent_id
    return tuple(reversed(branch))


def said_since(run: CompactionRun, leaf: Message) -> tuple[Message, ...] | None:
    """The leaf's branch after the message up to which this run made its view, oldest first.

    None where that message is not on the branch. The cost grows with the messages since then only.
    """
    later = {one.id: one for one in _made(_later(leaf.dialog_id, run.through_seq), leaf)}
    path = _path_to(run, leaf, {one.id: one.parent_id for one in later.values()})
    return None if path is None else tuple(later[pk] for pk in path)


def is_behind(run: CompactionRun, leaf: Message) -> bool:
    """Is the message up to which this run made its view on the leaf's branch? Costs less than `said_since`."""
    return _path_to(run, leaf, dict(_parents_after(leaf.dialog_id, run.through_seq))) is not None


def stands_behind(message: Message, leaf: Message) -> bool:
    """Is this message on the leaf's branch? Reads what was said after it, on any branch, unless the leaf answers it."""
    if message.pk in (leaf.pk, leaf.parent_id):
        return True
    parents = dict(_parents_after(leaf.dialog_id, message.seq))
    at: int | None = leaf.pk
    while at is not None and at in parents:
        at = parents[at]
    return at == message.pk


@prepared(UUIDField(), PositiveIntegerField())
def _parents_after(dialog_id: Any, seq: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(dialog_id=dialog_id, seq__gt=seq).order_by().values_list("pk", "parent_id")


@prepared(UUIDField(), PositiveIntegerField())
def _later(dialog_id: Any, seq: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(dialog_id=dialog_id, seq__gt=seq).order_by().values_list(*_COLUMNS)


def _path_to(run: CompactionRun, leaf: Message, parents: Mapping[int, int | None]) -> list[int] | None:
    path = list(upward(leaf.pk, parents))
    return path[::-1] if (parents[path[-1]] if path else leaf.pk) == run.leaf_id else None


def with_continuations(messages: Iterable[Message], leaf: Message) -> tuple[Message, ...]:
    """These messages of the leaf's branch, and those that show which of them are pieces of one answer: the requests to
    continue it, and the pieces of an answer that is to be continued now."""
    found = {one.id: one for one in (*messages, leaf)}
    before = {one.parent_id or 0 for one in found.values() if one.role == Role.ASSISTANT} - found.keys()
    asking = messages_with_ids(tuple(before), leaf) if before else ()
    found |= {one.id: one for one in asking if one.origin == MessageOrigin.CONTINUATION}
    at = leaf
    while at.origin == MessageOrigin.CONTINUATION and (cut := _parent(at, found)) and (asked := _parent(cut, found)):
        found |= {cut.pk: cut, asked.pk: asked}
        at = asked
    return tuple(sorted(found.values(), key=attrgetter("seq")))


def _parent(message: Message, read: Mapping[int, Message]) -> Message | None:
    return read.get(message.parent_id or 0) or message.parent
