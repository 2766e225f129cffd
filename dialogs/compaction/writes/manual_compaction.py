"""Compactions by a person: now, up to a message, as a preview, a reset, at a milestone, or to report an overflow and go
on; editing or discarding a preview; and bringing an archived message, or one line of it, back into the view.

The run itself finds out whether anything is gained; it is refused here only if it cannot begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.broadcast import compaction_on_commit
from dialogs.common.errors import DialogBusy, DialogError
from dialogs.compaction.reads.compaction import (
    BY_ITSELF,
    EDITING,
    OVERFLOWS,
    can_be_reported,
    is_overdue,
    overdue_drafts,
)
from dialogs.compaction.reads.compaction_card import display_of
from dialogs.compaction.writes.compaction import REVIEW_SECONDS, cancel_run, queue_run, run_at
from dialogs.compaction.writes.view_changes import apply_draft, apply_run, draft_of, pin, resting
from dialogs.context.border import Context
from dialogs.context.estimate import estimate, offered_tools, present_context, present_tokens
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import Guard, active_guard, bounds_of, by_limit, guard_of, is_off
from dialogs.models import LLM, Dialog, Generation, Message, MessageMark, ToolCall
from dialogs.models.message import INSERTED
from dialogs.transcript import model_view
from dialogs.transcript.model_view import Entry, as_said, dump, placed
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.writes.dialog_row import clean_text, idle, lock, out_of_trash, save, written_here
from dialogs.transcript.writes.marks import set_priority
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.events import Code, log
from health.compaction.config import AtMilestone, chain_for
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.configured import context_config
from health.limits import Term
from health.models import CompactionRun, ContextEvent

Trigger = CompactionRun.Trigger
FRESH_START = "fresh_start"
FOCUS_CHARS = 2_000


def request(
    *,
    dialog: Dialog,
    by: User,
    focus: str = "",
    up_to: Message | None = None,
    preview: bool = False,
    is_asked: bool = True,
) -> CompactionRun:
    """Compact now. A preview stays a draft until it is applied; who reviews summaries has a moment to do so,
    unless they are not to be asked."""
    guard = _guard(dialog)
    reviews = is_asked and display_of(by.pk).review_drafts
    with transaction.atomic():
        row = _resting(lock(dialog))
        if up_to is not None:
            _check_on_branch(row, up_to)
        _supersede(row)
        return queue_run(
            row,
            guard=guard,
            trigger=Trigger.MANUAL,
            requested_by=by,
            focus=focus[:FOCUS_CHARS],
            up_to=up_to,
            is_draft=preview or reviews,
            draft_seconds=REVIEW_SECONDS if reviews and not preview else None,
        )


@dataclass(frozen=True)
class Shortfall:
    """A context that does not fit another LLM's room, in that LLM's estimated tokens."""

    tokens: int
    room: int

    @property
    def over(self) -> int:
        return self.tokens - self.room


def shortfall(dialog: Dialog, llm: LLM) -> Shortfall | None:
    """None where the present context fits the other LLM's room, or nothing is known of that."""
    then = _with_llm(dialog, llm)
    guard = guard_of(then)
    if guard is None or then.current_leaf is None:
        return None
    tokens = present_tokens(then)
    return Shortfall(tokens=tokens, room=guard.room) if tokens > guard.room else None


def compact_and_change(*, dialog: Dialog, llm: LLM, by: User) -> CompactionRun:
    """Compact for the room of another LLM while the present one, which has more, still reads it; change then.

    Nobody is asked to review it: the change waits for it.
    """
    guard = guard_of(_with_llm(dialog, llm))
    limit = guard.room if guard else present_tokens(dialog_to_drive(dialog.pk))
    own = replace(_guard(dialog), limit=max(1, limit), reserve=0, refused=None)
    with transaction.atomic():
        row = written_here(_resting(lock(dialog)))
        _supersede(row)
        row.llm_after = llm
        row.save(update_fields=["llm_after"])
        return queue_run(row, guard=own, trigger=Trigger.MANUAL, requested_by=by)


def _with_llm(dialog: Dialog, llm: LLM) -> Dialog:
    """The dialog with another LLM, in memory only."""
    fresh = dialog_to_drive(dialog.pk)
    fresh.llm = llm
    return fresh


def reset(*, dialog: Dialog, by: User) -> CompactionRun:
    """Begin afresh: what must stay, and a handover that tells the rest. The messages stay readable."""
    guard = replace(_guard(dialog), chain=(FRESH_START,))
    with transaction.atomic():
        row = _resting(lock(dialog))
        _supersede(row)
        return queue_run(row, guard=guard, trigger=Trigger.RESET, requested_by=by)


@dataclass(frozen=True, kw_only=True)
class RequestSize:
    """How large the next request is, estimated, and what has room for it. None: nothing is known of it."""

    tokens: int
    limit: int | None
    window: int | None


def request_size(dialog: Dialog) -> RequestSize:
    """What a person is told before they ask for a compaction."""
    fresh = dialog_to_drive(dialog.pk)
    guard = guard_of(fresh)
    limit = guard.limit if guard else bounds_of(fresh.llm).accepted
    reserve, window = (guard.reserve, guard.window) if guard else (0, None)
    return RequestSize(tokens=present_tokens(fresh) + reserve, limit=limit, window=window)


def _guard(dialog: Dialog) -> Guard:
    """A guard whose limit is the real room. Where the room is unknown, the limit is the largest prompt that the model
    ever read, or the present request, which is counted before the row is locked: that may take a second."""
    fresh = dialog_to_drive(dialog.pk)
    guard = guard_of(fresh)
    if guard is None:
        accepted = bounds_of(fresh.llm).accepted
        limit = accepted or max(1, present_tokens(fresh))
        # Without a trace no limit is known.
        trace = (Term(what="accepted", tokens=limit, why=Reason(Why.LARGEST_READ)),) if accepted else ()
        guard = replace(by_limit(fresh), limit=limit, trace=trace, refused=None)
    return replace(guard, chain=chain_for(guard.config))


def _resting(row: Dialog) -> Dialog:
    if idle(out_of_trash(row)).current_leaf is None:
        raise DialogError(_("There is nothing to compact yet."))
    return row


def _check_on_branch(row: Dialog, message: Message) -> None:
    if message.pk not in {said.pk for said in course_branch(row.current_leaf)}:
        raise DialogError(_("This message is not part of the current course."))


def _supersede(row: Dialog) -> None:
    """A new run replaces an earlier preview, and an LLM change that waits for a compaction."""
    drafts = CompactionRun.objects.filter(dialog=row, status=CompactionRun.Status.DRAFT)
    drafts.update(status=CompactionRun.Status.CANCELLED, phase="cancelled", finished_at=timezone.now())
    if row.llm_after is not None:
        row.llm_after = None
        row.save(update_fields=["llm_after"])


def complete(*, dialog: Dialog, message_id: int, by: User) -> bool:
    """The task is done. True where a fresh start is to be offered: if it is automatic, also while the agent answers,
    and where nothing is compacted by itself."""
    marks = MessageMark.objects.filter(message__dialog=dialog, message_id=message_id, priority=MessageMark.Priority.P1)
    if not marks.exists():
        raise DialogError(_("Only the task of a P1 message can be done."))
    set_priority(dialog=dialog, message_id=message_id, priority="")
    wanted = context_config().at_milestone
    if wanted is not AtMilestone.AUTOMATIC:
        return wanted is AtMilestone.OFFER
    if is_off(dialog):
        return True
    try:
        reset(dialog=dialog, by=by)
    except DialogBusy:
        return True
    return False


@transaction.atomic
def report_and_continue(*, dialog: Dialog, by: User) -> CompactionRun:
    """Report an overflow and compact, in one transaction: the run's worker finds the report when the run is over."""
    row = written_here(lock(dialog))
    failed = Generation.objects.filter(dialog=row).order_by("-pk").first()
    if failed is None or failed.status != Generation.Status.FAILED or failed.error_code not in OVERFLOWS:
        raise DialogError(_("The last answer did not fail because the context was too large."))
    if not can_be_reported(failed):
        raise DialogError(failed.error_message)
    run = request(dialog=dialog, by=by, is_asked=False)
    known = ContextEvent.objects.filter(dialog=row, estimated__isnull=False).first()
    log(
        Code.REPORTED,
        row,
        run=run,
        estimated=known.estimated if known else None,
        limit=known.limit if known else None,
        message=failed.prompt_leaf_id,
    )
    return run


Status = CompactionRun.Status


@transaction.atomic
def edit_draft(*, dialog: Dialog, run_id: int, texts: Mapping[int, str]) -> None:
    """Change the draft's texts, by their places in the view.

    Editing extends the time for review; where the guard's request waits for it, by so many minutes.
    """
    row = lock(dialog)
    run = draft_of(row, run_id)
    changed = {at: clean_text(text) for at, text in texts.items() if _is_written(run, at)}
    counter = counter_of(row.llm)
    for at, text in changed.items():
        old, new = counter.count([run.view[at]["content"], text])
        run.view[at]["content"] = text
        run.estimated_after = max(0, (run.estimated_after or 0) + new - old)
    run.draft_until = timezone.now() + EDITING if run.trigger in BY_ITSELF else None
    run.save(update_fields=["view", "estimated_after", "draft_until"])
    save(row)
    compaction_on_commit(row.pk, run_id)


def _is_written(run: CompactionRun, at: int) -> bool:
    """Whether compaction wrote this entry: what a person or the agent said is never changed."""
    return 0 <= at < len(run.view) and "message" not in run.view[at]


def discard(*, dialog: Dialog, run_id: int) -> None:
    """Throw a preview away. One of the guard's counts as tried: the request that waits for it goes on without it."""
    run = CompactionRun.objects.filter(dialog=dialog, pk=run_id, trigger__in=BY_ITSELF).first()
    if run is None or not _skip(run, Why.DISCARDED):
        cancel_run(dialog=dialog, run_id=run_id)


def apply_overdue_drafts() -> None:
    """Let drafts hold whose time to review has run out, whether anybody looks at them or not."""
    for run in overdue_drafts():
        apply_if_overdue(run)


def apply_if_overdue(run: CompactionRun) -> None:
    if not is_overdue(run):
        return
    try:
        apply_draft(dialog=run.dialog, run_id=run.pk, by=None)
    except DialogError:
        _skip(run, Why.WENT_ANOTHER_WAY)


@transaction.atomic
def _skip(run: CompactionRun, why: Why) -> bool:
    """End a draft without applying it. False when it is none any more."""
    row = lock(run.dialog)
    drafts = CompactionRun.objects.filter(pk=run.pk, status=Status.DRAFT)
    columns = columns_of(Reason(why))
    skipped = drafts.update(status=Status.SKIPPED, phase=Status.SKIPPED, draft_until=None, **columns)
    if skipped:
        save(row)
        compaction_on_commit(row.pk, run.pk)
    return bool(skipped)


# Bringing back makes a new view, which can be undone. A message is put in its place and pinned, with the whole round of
# a tool. A line, or a message of another course, becomes a quote, which later views keep.

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
