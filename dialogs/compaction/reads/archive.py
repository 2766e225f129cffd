"""The archive page: messages that the model no longer sees, grouped by what removed them.

Tokens are estimated. Only the beginning of a long message is read; the whole text has its own URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left, Length

from dialogs.context.estimate import next_context
from dialogs.llms.counter import counter_of
from dialogs.models import Course, Dialog, Message, ToolCall
from dialogs.transcript.reads.archived_messages import Removal, removals
from dialogs.transcript.search import search
from health.models import CompactionRun

PAGE = 25
SHOWN_CHARS = 1_200
COUNTED_CHARS = 20_000
SHOWN_LOSSES = 60
# The columns of a run that are read; its view and what was read of each message are long.
TOLD_OF_RUN = ("trigger", "queued_at", "estimated_before", "estimated_after", "losses")
# The order of losses: the user's rules first, bare numbers last.
ORDER = {"binding": 0, "number": 2}


@dataclass(frozen=True, kw_only=True)
class ArchiveItem:
    """`coverage` is how much of it was read by what replaced it: {"extent", "read", "total"}, or nothing."""

    message: Message
    course: Course
    calls: tuple[ToolCall, ...]
    text: str
    chars: int
    estimated_tokens: int
    coverage: Mapping[str, Any] | None

    @property
    def is_cut(self) -> bool:
        return self.chars > len(self.text)


@dataclass(frozen=True, kw_only=True)
class ArchiveGroup:
    """The messages on this page that one run removed. `run` None: they left when their course was closed."""

    course: Course
    run: CompactionRun | None
    count: int
    items: tuple[ArchiveItem, ...]
    lost: tuple[Mapping[str, Any], ...] = ()
    kept: int = 0

    @property
    def shown_lost(self) -> tuple[Mapping[str, Any], ...]:
        return self.lost[:SHOWN_LOSSES]


@dataclass(frozen=True, kw_only=True)
class Archive:
    """`found` are the items that a search found, the best first; None: nothing was searched for."""

    count: int
    groups: tuple[ArchiveGroup, ...] = ()
    found: tuple[ArchiveItem, ...] | None = None
    has_more: bool = False


def archive(dialog: Dialog, *, page: int = 1, query: str = "") -> Archive:
    left = removals(dialog)
    count = sum(len(removal.ids) for removal in left)
    if query.strip():
        return _searched(dialog, query, left, count, page)
    listed = [(removal, pk) for removal in left for pk in removal.ids]
    shown = listed[(page - 1) * PAGE : page * PAGE]
    items = _items(dialog, shown)
    here = list(dict.fromkeys(removal for removal, _pk in shown))
    courses = Course.objects.in_bulk({removal.course_id for removal in here})
    runs = CompactionRun.objects.only(*TOLD_OF_RUN).in_bulk({removal.run_id for removal in here if removal.run_id})
    standing = _standing(dialog) if any(run.losses for run in runs.values()) else ""
    groups = (
        _group(removal, courses[removal.course_id], runs.get(removal.run_id or 0), items, standing) for removal in here
    )
    return Archive(count=count, groups=tuple(groups), has_more=len(listed) > page * PAGE)


def _searched(dialog: Dialog, query: str, left: tuple[Removal, ...], count: int, page: int) -> Archive:
    removal_of = {pk: removal for removal in left for pk in removal.ids}
    hits = search(dialog.pk, query, limit=page * PAGE + 1, removed_only=True)[(page - 1) * PAGE :]
    shown = [(removal_of[hit.message.pk], hit.message.pk) for hit in hits[:PAGE]]
    items = _items(dialog, shown)
    return Archive(count=count, found=tuple(items[pk] for _removal, pk in shown), has_more=len(hits) > PAGE)


def _group(
    removal: Removal, course: Course, run: CompactionRun | None, items: Mapping[int, ArchiveItem], standing: str
) -> ArchiveGroup:
    losses = run.losses if run else []
    lost = tuple(loss for loss in losses if not loss["kept"] and loss["text"] not in standing)
    return ArchiveGroup(
        course=course,
        run=run,
        count=len(removal.ids),
        items=tuple(items[pk] for pk in removal.ids if pk in items),
        lost=tuple(sorted(lost, key=lambda loss: ORDER.get(loss["kind"], 1))),
        kept=len(losses) - len(lost),
    )


def _standing(dialog: Dialog) -> str:
    """All text that the model sees now, with messages that were brought back: these are no loss."""
    return "\n".join(piece.content for piece in next_context(dialog).pieces)


def _items(dialog: Dialog, shown: Iterable[tuple[Removal, int]]) -> dict[int, ArchiveItem]:
    run_of = {pk: removal.run_id for removal, pk in shown}
    messages: QuerySet[Any] = Message.objects.select_related("course").filter(pk__in=run_of)
    found = list(messages.annotate(head=Left("content", COUNTED_CHARS), chars=Length("content")).defer("content"))
    sizes = counter_of(dialog.llm).count([message.head for message in found])
    receipts = _receipts({run_id for run_id in run_of.values() if run_id})
    calls: dict[int, tuple[ToolCall, ...]] = {}
    for call in ToolCall.objects.filter(message_id__in=run_of).defer("result"):
        calls[call.message_id] = (*calls.get(call.message_id, ()), call)
    return {
        message.pk: ArchiveItem(
            message=message,
            course=message.course,
            calls=calls.get(message.pk, ()),
            text=message.head[:SHOWN_CHARS],
            chars=message.chars,
            estimated_tokens=round(size * message.chars / max(1, len(message.head))),
            coverage=receipts.get((run_of[message.pk], message.pk)),
        )
        for message, size in zip(found, sizes, strict=True)
    }


def _receipts(run_ids: set[int]) -> dict[tuple[int | None, int], Mapping[str, Any]]:
    rows = CompactionRun.objects.filter(pk__in=run_ids).values_list("pk", "coverage")
    return {
        (run_id, int(receipt["message"])): receipt
        for run_id, coverage in rows
        for receipt in coverage
        if str(receipt["message"]).isdigit()
    }


def archived_text(dialog: Dialog, *, message_id: int) -> str | None:
    """The whole text of a message; None when it is not of this dialog."""
    return Message.objects.filter(dialog=dialog, pk=message_id).values_list("content", flat=True).first()
