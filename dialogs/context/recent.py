"""The context of the newest request of each client's conversation is kept in memory: the next request goes on from it.

That is exact, whoever else may write: a kept context counts only while the dialog has the version that this process
left behind with the answer, and ends with that answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from dialogs.common.bounded import Bounded
from dialogs.context.border import Context
from dialogs.context.estimate import said_bytes
from dialogs.models import Message
from dialogs.models.message import MessageOrigin

# Of all that is kept, as it is held: its texts, what each message takes beside them, and each conversation.
MOST_BYTES, EACH, BESIDE = 32 * 1024 * 1024, 2_000, 20_000
PLAIN = {MessageOrigin.CLIENT, MessageOrigin.TOOL, MessageOrigin.AGENT}


@dataclass(frozen=True)
class Answered:
    """A request as it was made, and the answer to it: the course's generation with this number."""

    context: Context
    answer: Message
    version: int
    number: int
    has_calls: bool

    @property
    def branch(self) -> tuple[Message, ...]:
        return (*self.context.branch, self.answer)

    @property
    def has_any_calls(self) -> bool:
        return self.has_calls or bool(self.context.calls)


class Recent:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._known: Bounded[UUID, Answered] = Bounded(most_bytes)

    def below(self, leaf: Message) -> Answered | None:
        """The kept request and answer that end with this message, read with its dialog just now; else None."""
        known = self._known.get(leaf.dialog_id)
        is_as_left = known is not None and (known.answer.pk, known.version) == (leaf.pk, leaf.dialog.version)
        return known if is_as_left else None

    def keep(self, context: Context, answer: Message, *, number: int, has_calls: bool) -> None:
        """Keep a context and its answer, where every message of the branch is sent as it stands."""
        if _is_whole(context, answer, has_calls=has_calls):
            size = said_bytes(context) + EACH * len(context.branch) + BESIDE
            before = self._known.get(answer.dialog_id)
            _let_go(context.branch[len(before.context.branch) if before else 0 :])
            found = Answered(context, answer, answer.dialog.version, number, has_calls)
            self._known.keep(answer.dialog_id, found, size=size)


def _let_go(messages: Iterable[Message]) -> None:
    """Drop the dialog, course and parent that these messages were stored with: each turn has rows of its own."""
    for message in messages:
        message._state.fields_cache.clear()


def _is_whole(context: Context, answer: Message, *, has_calls: bool) -> bool:
    is_next = context.branch[-1].pk == answer.parent_id and answer.dialog.current_leaf_id == answer.pk
    is_plain = context.view is None and len(context.pieces) == len(context.branch)
    # What says nothing is a turn only if the client goes on.
    says_something = bool(answer.content or has_calls)
    return is_next and is_plain and says_something and {one.origin for one in context.branch} <= PLAIN


RECENT = Recent()
