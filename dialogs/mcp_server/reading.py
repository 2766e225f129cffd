"""One function for each tool, from a person and arguments to a result. Synchronous, and only reads.

A cursor names the last row that was shown, not a number of rows, so that new rows shift no page. Dialogs are looked up
among the person's own; others do not exist here.
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

from dialogs.common.errors import in_words
from dialogs.compaction.reads.archive import archived_text
from dialogs.compaction.reads.compaction_rows import HEAVY, view_texts
from dialogs.mcp_server import schemas
from dialogs.mcp_server.schemas import (
    Call,
    Compaction,
    Compactions,
    Dialogs,
    DialogSummary,
    MessageText,
    Readings,
    Recalled,
    RecalledPassage,
    Receipt,
    SearchHit,
    SearchHits,
    Transcript,
    TranscriptMessage,
)
from dialogs.models import Course, Dialog, Message
from dialogs.transcript.model_view import NEEDED, holding_id
from dialogs.transcript.reads.archived_messages import archived_ids
from dialogs.transcript.reads.dialogs import Shelf, owned_dialog
from dialogs.transcript.reads.dialogs import list_dialogs as shelf_of
from dialogs.transcript.reads.path import read_tree
from dialogs.transcript.search import ArchivePassage, Hit, recalled, search
from health.models import CompactionRun
from health.selectors import history_before, latest_levels

Listed = TypeVar("Listed")


class InvalidCursor(ValueError):
    """The cursor names no row."""


@dataclass(frozen=True)
class Page(Generic[Listed]):
    rows: tuple[Listed, ...]
    has_more: bool


def page_of(found: Iterable[Listed], limit: int) -> Page[Listed]:
    rows = tuple(islice(found, limit + 1))
    return Page(rows[:limit], has_more=len(rows) > limit)


def cursor_after(dialog: Dialog) -> str:
    """The cursor for the dialogs after this one."""
    return f"{dialog.active_at.isoformat()}/{dialog.pk}"


def dialogs_page(*, user: User, shelf: Shelf, search: str, after: str, limit: int) -> Page[Dialog]:
    """The person's dialogs, the latest activity first. `after` is a cursor, or empty for the first page."""
    found = shelf_of(user=user, state=shelf, search=search).order_by("-active_at", "-pk")
    if after:
        moment, pk = _place(after)
        found = found.filter(Q(active_at__lt=moment) | Q(active_at=moment, pk__lt=pk))
    return page_of(found[: limit + 1], limit)


def _place(text: str) -> tuple[datetime, UUID]:
    moment, _slash, pk = text.partition("/")
    try:
        found = datetime.fromisoformat(moment), UUID(pk)
    except ValueError:
        raise InvalidCursor(text) from None
    if found[0].tzinfo is None:
        raise InvalidCursor(text)
    return found


def _heads() -> QuerySet[Message]:
    """Messages with their beginning (`head`) and length (`chars`) only: a message may be megabytes long."""
    read = Message.objects.select_related("course").prefetch_related("calls")
    return read.annotate(head=Left("content", HEAD_CHARS), chars=Length("content")).defer("content", "parts")


def runs_page(dialog: Dialog, *, before: int, limit: int) -> Page[CompactionRun]:
    """The newest first, without their long columns. `before`: only older runs than the one with this id, unless 0."""
    found = CompactionRun.objects.filter(dialog=dialog).defer(*HEAVY).order_by("-pk")
    return page_of((found.filter(pk__lt=before) if before else found)[: limit + 1], limit)


def run_of(dialog: Dialog, run_id: int) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog=dialog, pk=run_id).first()


def runs_in_force(dialog: Dialog) -> frozenset[int]:
    """The runs whose view is in force in their course, on the current branch."""
    said = frozenset(read_tree(dialog.pk).path(dialog.current_leaf_id))
    runs = CompactionRun.objects.filter(dialog=dialog).only(*NEEDED).in_bulk()
    heads = Course.objects.filter(dialog=dialog, head_run__isnull=False).values_list("head_run_id", flat=True)
    holds = (holding_id(head, runs, said) for head in heads)
    return frozenset(pk for pk in holds if pk)


HEAD_CHARS = 1_500
ARGUMENTS_CHARS = 300
TEXT_CHARS = 8_000
UNNAMED = (
    "Which conversation? Name it by dialog_id or chat, or let the client send its header X-Dominds-Dialog or "
    "X-Dominds-Chat. list_dialogs shows those there are."
)
WRITTEN_CHARS = 4_000
Row = TypeVar("Row")


class NotFound(LookupError):
    """`str(error)` names what does not exist."""


def dialog_of(user: User, dialog_id: UUID) -> Dialog:
    try:
        return owned_dialog(user=user, dialog_id=dialog_id)
    except Dialog.DoesNotExist:
        raise NotFound(f"There is no dialog {dialog_id}. list_dialogs shows those there are.") from None


def list_dialogs(user: User, args: schemas.ListDialogs) -> Dialogs:
    page = dialogs_page(user=user, shelf=args.shelf, search=args.query, after=args.cursor, limit=args.limit)
    cursor = cursor_after(page.rows[-1]) if page.has_more else None
    return Dialogs(dialogs=_summaries(page.rows), next_cursor=cursor)


def _summaries(dialogs: Sequence[Dialog]) -> list[DialogSummary]:
    levels = latest_levels([dialog.pk for dialog in dialogs])
    return [
        DialogSummary(
            id=dialog.pk,
            title=dialog.title,
            agent=dialog.agent.name,
            llm=dialog.llm.slug,
            level=levels.get(dialog.pk),
            busy=dialog.is_busy,
            client_driven=dialog.is_client_driven,
            last_activity=dialog.active_at,
        )
        for dialog in dialogs
    ]


def read_dialog(user: User, args: schemas.ReadDialog) -> Transcript:
    dialog = dialog_of(user, args.dialog_id)
    path = read_tree(dialog.pk).path(dialog.current_leaf_id)
    if args.cursor and args.cursor not in path:
        raise InvalidCursor(args.cursor)
    end = path.index(args.cursor) if args.cursor else len(path)
    ids = path[max(0, end - args.limit) : end]
    found, archived = _heads().in_bulk(ids), archived_ids(dialog.pk)
    return Transcript(
        dialog=_summaries([dialog])[0],
        messages=[_said(found[pk], archived) for pk in ids],
        total=len(path),
        next_cursor=ids[0] if end > args.limit else None,
    )


def _said(message: Message, archived: frozenset[int]) -> TranscriptMessage:
    head, chars = message.head, message.chars  # type: ignore[attr-defined]  # annotated by `_heads`
    calls = [
        Call(name=call.name, arguments=cut(call.arguments, ARGUMENTS_CHARS), status=call.status)
        for call in message.calls.all()
    ]
    return TranscriptMessage(
        id=message.pk,
        course=message.course.number,
        role=message.role,
        origin=message.origin,
        said_at=message.created_at,
        text=head,
        chars=chars,
        is_cut=chars > len(head),
        archived=message.pk in archived,
        calls=calls,
    )


def cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}…"


def read_message(user: User, args: schemas.ReadMessage) -> MessageText:
    text = archived_text(dialog_of(user, args.dialog_id), message_id=args.message_id)
    if text is None:
        raise NotFound(f"There is no message {args.message_id} in this dialog.")
    if args.cursor > len(text):
        raise InvalidCursor(args.cursor)
    end = args.cursor + TEXT_CHARS
    return MessageText(
        id=args.message_id,
        text=text[args.cursor : end],
        start=args.cursor,
        chars=len(text),
        next_cursor=end if end < len(text) else None,
    )


def search_archive(user: User, args: schemas.SearchArchive) -> SearchHits:
    dialog = dialog_of(user, args.dialog_id)
    end = args.cursor + args.limit
    hits = search(dialog.pk, args.query, limit=end + 1, removed_only=not args.also_current, any_word=args.any_word)
    page = page_of(hits[args.cursor :], args.limit)
    return SearchHits(hits=[_search_hit(hit) for hit in page.rows], next_cursor=end if page.has_more else None)


def _search_hit(hit: Hit) -> SearchHit:
    said = hit.message
    return SearchHit(
        id=said.pk, course=said.course.number, role=said.role, said_at=said.created_at, snippet=hit.snippet
    )


def recall(user: User, args: schemas.Recall) -> Recalled:
    dialog = _named(user, args)
    found = recalled(dialog, args.query, limit=args.limit)
    return Recalled(dialog=dialog.pk, passages=[_recalled_passage(passage) for passage in found])


def _named(user: User, args: schemas.Recall) -> Dialog:
    """The dialog by its id, else the newest with this client's chat name."""
    if args.dialog_id:
        try:
            return dialog_of(user, UUID(args.dialog_id))
        except ValueError:
            raise NotFound(f"There is no dialog {args.dialog_id}. list_dialogs shows those there are.") from None
    if not args.chat:
        raise NotFound(UNNAMED)
    owned = Dialog.objects.filter(owner=user, trashed_at=None, client__chat=args.chat)
    if found := owned.select_related("agent", "llm").order_by("-active_at").first():
        return found
    raise NotFound(f"There is no conversation that a client calls {args.chat}.")


def _recalled_passage(passage: ArchivePassage) -> RecalledPassage:
    said = passage.message
    return RecalledPassage(
        message=said.pk, course=said.course.number, role=said.role, said_at=said.created_at, text=passage.text
    )


def list_readings(user: User, args: schemas.ListReadings) -> Readings:
    dialog = dialog_of(user, args.dialog_id)
    newest = reversed(history_before(dialog.pk, limit=args.limit + 1, before=args.cursor))
    page = page_of(newest, args.limit)
    cursor = page.rows[-1].generation_id if page.has_more else None
    return Readings.model_validate({"readings": page.rows, "next_cursor": cursor})


def list_compactions(user: User, args: schemas.ListCompactions) -> Compactions:
    dialog = dialog_of(user, args.dialog_id)
    page = runs_page(dialog, before=args.cursor, limit=args.limit)
    in_force = runs_in_force(dialog)
    return Compactions(
        compactions=[_compaction(run, in_force) for run in page.rows],
        next_cursor=page.rows[-1].pk if page.has_more else None,
    )


def _compaction(run: CompactionRun, in_force: frozenset[int]) -> Compaction:
    told = {"limit": run.limit_tokens, "in_force": run.pk in in_force, "reason": in_words(run.told)}
    return Compaction.model_validate(vars(run) | told)


def read_compaction(user: User, args: schemas.ReadCompaction) -> Receipt:
    """The four lists share one cursor: a page has the next rows of each."""
    dialog = dialog_of(user, args.dialog_id)
    run = run_of(dialog, args.compaction_id)
    if run is None:
        raise NotFound(f"There is no compaction {args.compaction_id} in this dialog. See list_compactions.")
    losses = sorted(run.losses, key=lambda loss: bool(loss["kept"]))
    written = view_texts(run)
    end = args.cursor + args.limit
    longest = max(map(len, (run.coverage, losses, run.ledger, written)))

    def here(rows: Iterable[Row]) -> list[Row]:
        return list(rows)[args.cursor : end]

    return Receipt.model_validate(
        {
            "compaction": _compaction(run, runs_in_force(dialog)),
            "steps": [{**row, "note": in_words(row.get("why") or row["note"])} for row in run.steps],
            "coverage": here(run.coverage),
            "coverage_total": len(run.coverage),
            "losses": here(losses),
            "losses_total": len(losses),
            "ledger": here(run.ledger),
            "ledger_total": len(run.ledger),
            "written": [cut(one.text, WRITTEN_CHARS) for one in here(written)],
            "written_total": len(written),
            "next_cursor": end if end < longest else None,
        }
    )
