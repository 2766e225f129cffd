"""What compactions did, for the two tools about them. Every number of tokens is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.contrib.auth.models import User

from dialogs.common.reasons import in_words
from dialogs.compaction.reads.compaction_rows import written_in
from dialogs.mcp_server import arguments as asked
from dialogs.mcp_server.paging import run_of, runs_in_force, runs_page
from dialogs.mcp_server.reading import NothingThere, cut, dialog_of
from dialogs.mcp_server.results import Compaction, Compactions, Covered, Fact, LedgerEntry, Receipt, Step
from health.models import CompactionRun

WRITTEN_CHARS = 4_000
Row = TypeVar("Row")


def list_compactions(user: User, args: asked.ListCompactions) -> Compactions:
    dialog = dialog_of(user, args.dialog_id)
    page = runs_page(dialog, before=args.cursor, limit=args.limit)
    in_force = runs_in_force(dialog)
    return Compactions(
        compactions=[_compaction(run, in_force) for run in page.rows],
        next_cursor=page.rows[-1].pk if page.has_more else None,
    )


def _compaction(run: CompactionRun, in_force: frozenset[int]) -> Compaction:
    return Compaction(
        id=run.pk,
        status=run.status,
        trigger=run.trigger,
        in_force=run.pk in in_force,
        estimated_before=run.estimated_before,
        estimated_after=run.estimated_after,
        limit=run.limit_tokens,
        messages_before=run.messages_before,
        messages_after=run.messages_after,
        recovered=run.recovered,
        reason=in_words(run.told),
        queued_at=run.queued_at,
        finished_at=run.finished_at,
    )


def read_compaction(user: User, args: asked.ReadCompaction) -> Receipt:
    """The four lists are turned over together: each page has the next rows of every one that has more."""
    dialog = dialog_of(user, args.dialog_id)
    run = run_of(dialog, args.compaction_id)
    if run is None:
        raise NothingThere(f"There is no compaction {args.compaction_id} in this dialog. See list_compactions.")
    losses = sorted(run.losses, key=lambda loss: bool(loss["kept"]))
    written = written_in(run)
    end = args.cursor + args.limit
    longest = max(map(len, (run.coverage, losses, run.ledger, written)))

    def here(rows: Iterable[Row]) -> list[Row]:
        return list(rows)[args.cursor : end]

    return Receipt(
        compaction=_compaction(run, runs_in_force(dialog)),
        steps=[_step(row) for row in run.steps],
        coverage=[_covered(row) for row in here(run.coverage)],
        coverage_total=len(run.coverage),
        losses=[_fact(row) for row in here(losses)],
        losses_total=len(losses),
        ledger=[LedgerEntry(text=row["text"], kind=row["kind"]) for row in here(run.ledger)],
        ledger_total=len(run.ledger),
        written=[cut(one.text, WRITTEN_CHARS) for one in here(written)],
        written_total=len(written),
        next_cursor=end if end < longest else None,
    )


def _step(row: Mapping[str, Any]) -> Step:
    return Step(
        name=row["phase"],
        estimated_before=row["estimated_before"],
        estimated_after=row["estimated_after"],
        changed=row["changed"],
        note=in_words(row.get("why") or row["note"]),
    )


def _covered(row: Mapping[str, Any]) -> Covered:
    return Covered(message=str(row["message"]), extent=row["extent"], read_chars=row["read"], total_chars=row["total"])


def _fact(row: Mapping[str, Any]) -> Fact:
    return Fact(text=row["text"], kind=row["kind"], message=str(row["message"]), kept=row["kept"])
