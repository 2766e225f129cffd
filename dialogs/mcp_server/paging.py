"""What is read page by page where there is no screen to scroll: dialogs, messages of the branch, compactions.

A page goes on from what was shown last, not from a number of rows: what comes in meanwhile shifts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Length

from dialogs.compaction.reads.compaction_rows import HEAVY
from dialogs.models import Course, Dialog, Message
from dialogs.transcript.reads.dialogs import Shelf, list_dialogs
from dialogs.transcript.reads.lineage import NEEDED, holding_id
from dialogs.transcript.reads.path import read_tree
from health.models import CompactionRun

Row = TypeVar("Row")


class UnknownPlace(ValueError):
    """A page was asked for that goes on from nowhere."""


@dataclass(frozen=True)
class Page(Generic[Row]):
    rows: tuple[Row, ...]
    has_more: bool


def page_of(found: Iterable[Row], limit: int) -> Page[Row]:
    rows = tuple(islice(found, limit + 1))
    return Page(rows[:limit], has_more=len(rows) > limit)


def place_of(dialog: Dialog) -> str:
    """What `dialogs_page` goes on after."""
    return f"{dialog.active_at.isoformat()}/{dialog.pk}"


def dialogs_page(*, user: User, shelf: Shelf, search: str, after: str, limit: int) -> Page[Dialog]:
    """Dialogs of this person's, the latest activity first. `after` is empty, or the place of the last one shown."""
    found = list_dialogs(user=user, state=shelf, search=search).order_by("-active_at", "-pk")
    if after:
        moment, pk = _place(after)
        found = found.filter(Q(active_at__lt=moment) | Q(active_at=moment, pk__lt=pk))
    return page_of(found[: limit + 1], limit)


def _place(text: str) -> tuple[datetime, UUID]:
    moment, _slash, pk = text.partition("/")
    try:
        found = datetime.fromisoformat(moment), UUID(pk)
    except ValueError:
        raise UnknownPlace(text) from None
    if found[0].tzinfo is None:
        raise UnknownPlace(text)
    return found


@dataclass(frozen=True, kw_only=True)
class BranchPage:
    """`messages` oldest first, with the beginning of each as `head`, and `chars` in all; `total` on the branch."""

    messages: Sequence[Message]
    has_older: bool
    total: int


def branch_page(dialog: Dialog, *, before: int, limit: int, head_chars: int) -> BranchPage:
    """The newest messages of the branch that is shown; those before a message where `before` is its id, not 0."""
    path = read_tree(dialog.pk).path(dialog.current_leaf_id)
    if before and before not in path:
        raise UnknownPlace(before)
    end = path.index(before) if before else len(path)
    start = max(0, end - limit)
    ids = path[start:end]
    found = _heads(head_chars).in_bulk(ids)
    return BranchPage(messages=[found[pk] for pk in ids], has_older=start > 0, total=len(path))


def _heads(chars: int) -> QuerySet[Message]:
    """A message may be megabytes long: only its beginning is read."""
    read = Message.objects.select_related("course").prefetch_related("calls")
    return read.annotate(head=Left("content", chars), chars=Length("content")).defer("content", "parts")


def runs_page(dialog: Dialog, *, before: int, limit: int) -> Page[CompactionRun]:
    """The newest first, without what is long in them; those before a run where `before` is its id, not 0."""
    found = CompactionRun.objects.filter(dialog=dialog).defer(*HEAVY).order_by("-pk")
    return page_of((found.filter(pk__lt=before) if before else found)[: limit + 1], limit)


def run_of(dialog: Dialog, run_id: int) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog=dialog, pk=run_id).first()


def runs_in_force(dialog: Dialog) -> frozenset[int]:
    """The runs whose view is what the model sees of their course, on the branch that is shown."""
    said = frozenset(read_tree(dialog.pk).path(dialog.current_leaf_id))
    runs = CompactionRun.objects.filter(dialog=dialog).only(*NEEDED).in_bulk()
    heads = Course.objects.filter(dialog=dialog, head_run__isnull=False).values_list("head_run_id", flat=True)
    holds = (holding_id(head, runs, said) for head in heads)
    return frozenset(pk for pk in holds if pk)
