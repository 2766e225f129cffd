"""The transcript as rows: messages of the current branch, tries that failed, the live answer, the queue.

A row's `key` changes whenever its HTML would, so that a browser can be sent only what is new to it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from dialogs.errors import headline
from dialogs.models import Dialog, Generation, Message, QueuedMessage
from dialogs.models.message import MessageOrigin
from dialogs.selectors.path import Tree, messages_by_id, read_tree

Status = Generation.Status
SHOWN_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class MessageRow:
    kind: ClassVar[str] = "message"
    message: Message
    generation: Generation | None
    siblings: int
    position: int
    previous_id: int | None
    next_id: int | None
    is_last_user: bool
    is_last_answer: bool

    @property
    def dom_id(self) -> str:
        return f"message-{self.message.pk}"

    @property
    def key(self) -> str:
        return f"{self.position}/{self.siblings}/{self.is_last_user}/{self.is_last_answer}"


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """A try that brought no message: it failed, was interrupted, or was stopped before the first word."""

    kind: ClassVar[str] = "attempt"
    generation: Generation
    can_retry: bool

    @property
    def dom_id(self) -> str:
        return f"attempt-{self.generation.pk}"

    @property
    def key(self) -> str:
        return f"{self.generation.status}/{self.can_retry}"

    @property
    def headline(self) -> str | Promise:
        if self.generation.error_code == "provider_unreachable" and self.generation.partial_text:
            return _("The connection to the provider broke in the middle of the answer.")
        return headline(self.generation.error_code) if self.generation.error_code else ""


@dataclass(frozen=True, kw_only=True)
class LiveRow:
    kind: ClassVar[str] = "live"
    generation: Generation
    dom_id: ClassVar[str] = "live"

    @property
    def key(self) -> str:
        return str(self.generation.pk)


@dataclass(frozen=True, kw_only=True)
class QueuedRow:
    kind: ClassVar[str] = "queued"
    queued: QueuedMessage
    key: ClassVar[str] = ""

    @property
    def dom_id(self) -> str:
        return f"queued-{self.queued.pk}"


Row = MessageRow | AttemptRow | LiveRow | QueuedRow


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """`hidden` counts the earlier messages that were left out. `version` is the dialog's when it was read."""

    rows: tuple[Row, ...]
    hidden: int
    version: int


def transcript(dialog: Dialog, *, limit: int | None = SHOWN_ROWS) -> Transcript:
    tree = read_tree(dialog.pk)
    path = tree.path(dialog.current_leaf_id)
    shown = path[-limit:] if limit else path
    messages = messages_by_id(shown)
    answers = {g.message_id: g for g in Generation.objects.filter(message_id__in=shown).select_related("reading")}
    typed = [message.pk for message in messages if message.origin == MessageOrigin.TYPED]
    last_typed = typed[-1] if typed else None
    between = _rows_between(
        shown,
        can_retry_from=None if dialog.is_busy else last_typed,
        due_after=dialog.current_leaf_id if dialog.answer_due else None,
    )
    rows: list[Row] = []
    for message in messages:
        rows.append(
            MessageRow(
                message=message,
                generation=answers.get(message.pk),
                is_last_user=message.pk == last_typed,
                is_last_answer=message.pk == path[-1] and message.pk in answers,
                **_place_among_siblings(tree, message.pk),
            )
        )
        rows += between[message.pk]
    rows += [QueuedRow(queued=queued) for queued in QueuedMessage.objects.filter(dialog=dialog)]
    return Transcript(rows=tuple(rows), hidden=len(path) - len(shown), version=dialog.version)


def _place_among_siblings(tree: Tree, message_id: int) -> dict[str, Any]:
    versions = tree.siblings(message_id)
    at = versions.index(message_id)
    return {
        "siblings": len(versions),
        "position": at + 1,
        "previous_id": versions[at - 1] if at else None,
        "next_id": versions[at + 1] if at + 1 < len(versions) else None,
    }


def _rows_between(
    shown: tuple[int, ...], *, can_retry_from: int | None, due_after: int | None
) -> defaultdict[int, list[Row]]:
    """The tries that follow each message and became none, and the answer that is being made.

    A try without text is shown only while it is the newest: later ones, and one to come, explain it away.
    """
    rows: defaultdict[int, list[Row]] = defaultdict(list)
    newest: set[int] = set()
    tries = Generation.objects.filter(prompt_leaf_id__in=shown, prompt_leaf_id__isnull=False).order_by("-id")
    for generation in tries.select_related("reading"):
        leaf = generation.prompt_leaf_id
        is_newest = leaf not in newest
        another_comes = generation.retry_at is not None and leaf == due_after
        newest.add(leaf)
        if generation.status == Status.RUNNING:
            rows[leaf].append(LiveRow(generation=generation))
        elif generation.message_id is None and (generation.partial_text or (is_newest and not another_comes)):
            can_retry = is_newest and leaf == can_retry_from
            rows[leaf].append(AttemptRow(generation=generation, can_retry=can_retry))
    for found in rows.values():
        found.reverse()
    return rows
