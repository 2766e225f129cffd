"""The branch of a dialog that is shown and sent: from the first message down to a leaf."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from dialogs.models import Message


@dataclass(frozen=True)
class Tree:
    """The ids of a dialog's messages, by parent. Small: no message text is read for it."""

    parents: dict[int, int | None]
    children: dict[int | None, tuple[int, ...]]

    def path(self, leaf: int | None) -> tuple[int, ...]:
        """Message ids from the root to `leaf`."""
        ids: list[int] = []
        while leaf is not None:
            ids.append(leaf)
            leaf = self.parents[leaf]
        return tuple(reversed(ids))

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


def course_branch(leaf: Message | None) -> tuple[Message, ...]:
    """The messages of the leaf's course on its branch, first one first. Costs what the course is long, no more."""
    if leaf is None:
        return ()
    found = {message.pk: message for message in Message.objects.filter(course_id=leaf.course_id).order_by()}
    branch: list[Message] = []
    at: int | None = leaf.pk
    while at in found:
        branch.append(found[at])
        at = found[at].parent_id
    return tuple(reversed(branch))
