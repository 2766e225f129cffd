"""Brings an archived message, or one line of it, back into the view, as a new view that can be undone.

A message is put in its place and pinned, with the whole round of a tool. A line, or a message of another course,
becomes a quote, which later views keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.broadcast import compaction_on_commit
from dialogs.common.errors import DialogError
from dialogs.compaction.writes.compaction import run_at
from dialogs.compaction.writes.view_changes import apply_run, pin, resting
from dialogs.context.border import Context
from dialogs.context.estimate import estimate, offered_tools, present_context
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import Guard, active_guard, by_limit
from dialogs.models import Dialog, Message, ToolCall
from dialogs.models.message import INSERTED
from dialogs.transcript import model_view
from dialogs.transcript.model_view import Entry, as_said, dump, placed
from dialogs.transcript.writes.dialog_row import lock, save
from dialogs.turns.reads.turns import dialog_to_drive
from health.models import CompactionRun

# A line longer than this is cut to what was asked for: a log may be one line.
LINE_CHARS = 600


@transaction.atomic
def bring_back(*, dialog: Dialog, message_id: int, text: str | None = None, by: User) -> CompactionRun:
    """Bring back a message or a line of it. Raises DialogError where the model sees it already, where it does not fit,
    and while the dialog is busy."""
    row = resting(lock(dialog))
    message = Message.objects.select_related("course").filter(dialog=row, pk=message_id).first()
    if message is None or row.current_leaf is None or row.trashed_at:
        raise DialogError(_("There is no such message."))
    context = present_context(dialog_to_drive(row.pk))
    added = _entries(message, text, context)
    view = context.view or as_said(context.branch)
    moved = {entry.message_id for entry in added} - {None}
    kept = [entry for entry in view if entry.message_id not in moved]
    after = placed(kept, added, context.branch)
    if set(added) <= set(view):
        raise DialogError(_("The model sees this already."))
    run = _record(row, context, after, by)
    for entry in added:
        if entry.message_id:
            pin(entry.message_id)
    if not apply_run(row, run, by=by):
        raise DialogError(_("The dialog went another way meanwhile. Try again."))
    save(row)
    compaction_on_commit(row.pk, run.pk)
    return run


def _entries(message: Message, text: str | None, context: Context) -> tuple[Entry, ...]:
    """The message and its round where they can stand as they were said, else a quote of it."""
    said = {one.pk for one in context.branch if one.origin not in INSERTED}
    around = _round_of(message, context)
    if text is None and around and said.issuperset(around):
        return tuple(Entry(message_id=pk) for pk in around)
    quoted = _whole_text(message) if text is None else line_with(message.content, text)
    if not quoted.strip():
        raise DialogError(_("This line is not in the message."))
    return (Entry(content=model_view.quote(message, quoted), kind=model_view.KIND, covers=(message.pk,)),)


def _round_of(message: Message, context: Context) -> tuple[int, ...]:
    """The message; with the call that it answers and all that belongs to it. Empty while a result is missing, and where
    it was said on another branch."""
    found = next(iter(model_view.rounds_with([message.pk], context.branch)), ())
    return found if not found or len(found) == 1 + len(context.calls.get(found[0], ())) else ()


def _whole_text(message: Message) -> str:
    calls = ToolCall.objects.filter(message=message).order_by("position")
    return "\n".join([message.content, *(f"[called {call.name} with {call.arguments}]" for call in calls)])


def line_with(content: str, text: str) -> str:
    """The whole line, or lines, in which these words stand: a bare number says nothing. Empty where they do not."""
    wanted = text.strip()
    at = content.find(wanted)
    if not wanted or at < 0:
        return ""
    start = content.rfind("\n", 0, at) + 1
    end = content.find("\n", at + len(wanted))
    lines = content[start : len(content) if end < 0 else end].strip()
    return lines if len(lines) <= max(LINE_CHARS, len(wanted)) else wanted


def _record(row: Dialog, context: Context, view: Sequence[Entry], by: User) -> CompactionRun:
    """A view that nothing was compacted for: no chain, no steps."""
    before = CompactionRun.objects.filter(pk=context.run_id or 0).first()
    standing = {entry.message_id for entry in view}
    run = run_at(
        row,
        context.branch[-1],
        trigger=CompactionRun.Trigger.MANUAL,
        status=CompactionRun.Status.APPLIED,
        phase="success",
        requested_by=by,
        messages_before=len(context.pieces),
        view=dump(view),
        removed=[pk for pk in (before.removed if before else []) if pk not in standing],
        finished_at=timezone.now(),
    )
    _estimate(run, context, view)
    run.save()
    return run


def _estimate(run: CompactionRun, context: Context, view: Sequence[Entry]) -> None:
    guard = active_guard(context.dialog)
    limits: Guard = guard or by_limit(context.dialog)
    tools, counter = offered_tools(context.dialog), counter_of(context.dialog.llm)
    now, then = (estimate(seen, tools, counter) for seen in (context, context.seeing(view)))
    if guard and then.tokens > guard.room:
        raise DialogError(
            _("It does not fit: ≈%(tokens)s tokens, and the limit leaves room for %(room)s. Bring back a line of it.")
            % {"tokens": f"{then.tokens:,}", "room": f"{guard.room:,}"}
        )
    run.limit_tokens, run.reserve_tokens, run.limit_trace = limits.limit, limits.reserve, limits.traced()
    run.estimated_before, run.estimated_after = now.tokens + limits.reserve, then.tokens + limits.reserve
    run.tokens_now, run.counter, run.grade = run.estimated_after, then.counter[:60], str(then.grade)
    run.messages_after = len(context.seeing(view).pieces)
