"""A person's actions on the messages of a dialog: post, edit, retry, choose a branch, stop, answer a question in its
box or with an ordinary message.

No message is changed or deleted. Every function raises a DialogError that says what to do.
"""

from __future__ import annotations

import hashlib

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.schedule import drive_on_commit
from dialogs.models import Course, Dialog, Message, Question, QueuedMessage, ToolCall
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes import task_snapshot
from dialogs.transcript.writes.dialog_row import (
    add_message,
    clean_text,
    close_answer,
    count_anew,
    current_course,
    idle,
    lock,
    newest_leaf,
    out_of_trash,
    save,
    want_answer,
    written_here,
)
from dialogs.turns.writes.remediation import forget
from dialogs.turns.writes.tool_calls import close_call, withdraw_open_calls

TITLE_CHARS = 60
BY_MESSAGE = "The person answers with the message that follows."
Status = Question.Status


def _idle(row: Dialog) -> Dialog:
    """The locked row of a dialog at rest. An open question is withdrawn: the person goes on in another way."""
    withdraw_open_calls(idle(row))
    return row


@transaction.atomic
def post_once(*, dialog: Dialog, content: str, sending: str) -> None:
    """As `post_message`, but a repeated `sending` with the same text, as after a lost response, is stored once.

    A different text is another message even with the same `sending`; without one any text is.
    """
    text, row = clean_text(content), lock(dialog)
    sent = hashlib.sha256(f"{sending}\n{text}".encode()).hexdigest()
    if not sending or row.last_sent != sent:
        Dialog.objects.filter(pk=row.pk).update(last_sent=sent)
        post_message(dialog=dialog, content=text, locked=row)


@transaction.atomic
def post_message(*, dialog: Dialog, content: str, locked: Dialog | None = None) -> Message | QueuedMessage:
    """Store a typed message and wake the driver; while a turn runs, the message waits for its own.

    Where the agent has asked something and waits, the message is the answer. `locked` is the row, where it is held.
    """
    text = clean_text(content)
    row = written_here(out_of_trash(locked or lock(dialog)))
    if row.is_busy:
        return _queue(row, text)
    answer_by_message(row)
    withdraw_open_calls(row)
    message = add_typed(row, text)
    want_answer(row)
    return message


def add_typed(row: Dialog, text: str) -> Message:
    """Append what a person typed at the current leaf. The first message names the dialog."""
    if not row.titled_by_person and row.current_leaf_id is None:
        row.title = title_from(text)
        row.save(update_fields=["title"])
    row.archived_at = None
    row.paused_by = PausedBy.NOBODY
    count_anew(row)
    # After an undone compaction the guard may compact again from this message on.
    Course.objects.filter(dialog=row, guard_held=True).update(guard_held=False)
    task_snapshot.go_on(row, text)
    return add_message(row, role=Role.USER, origin=MessageOrigin.TYPED, content=text, parent=row.current_leaf)


def title_from(text: str) -> str:
    """The first line, cut at a word."""
    line = next(line.strip(" #>*`-\t") or line.strip() for line in text.splitlines() if line.strip())
    if len(line) <= TITLE_CHARS:
        return line
    head, space, _rest = line[:TITLE_CHARS].rpartition(" ")
    return (head if space else line[:TITLE_CHARS]) + "…"


def _queue(row: Dialog, text: str) -> QueuedMessage:
    queued = QueuedMessage.objects.create(dialog=row, content=text)
    # Wakes the driver even if it runs: its release then fails, and it checks the queue again.
    row.wake_seq += 1
    save(row, "wake_seq")
    drive_on_commit(row.pk)
    return queued


@transaction.atomic
def edit_message(*, dialog: Dialog, message: Message, content: str) -> Message:
    """Replace the last user message by a sibling with this text; the old one stays readable."""
    text = clean_text(content)
    row = _idle(written_here(out_of_trash(lock(dialog))))
    if message.pk != _last_typed(row).pk:
        raise DialogError(_("Only your last message can be edited."))
    forget(message.course)
    task_snapshot.say_anew(row, before=message.content, goal=text)
    row.paused_by = PausedBy.NOBODY
    count_anew(row)
    edited = add_message(
        row,
        role=Role.USER,
        origin=MessageOrigin.TYPED,
        content=text,
        parent=message.parent,
        course=message.course,
    )
    want_answer(row)
    return edited


@transaction.atomic
def retry(*, dialog: Dialog) -> None:
    """Answer the last user message again, typed or inserted. An existing answer stays, as a sibling."""
    row = _idle(written_here(out_of_trash(lock(dialog))))
    row.current_leaf = _last_of_user(row)
    count_anew(row)
    row.paused_by = PausedBy.NOBODY
    want_answer(row)


def _last_of_user(row: Dialog) -> Message:
    message = row.current_leaf
    while message is not None and message.role != Role.USER:
        message = message.parent
    if message is None:
        raise DialogError(_("There is no message to answer yet."))
    return message


def _last_typed(row: Dialog) -> Message:
    """The current course's last typed message: editing one of an earlier course would abandon the later courses."""
    message = _last_of_user(row)
    while message.origin != MessageOrigin.TYPED:
        if message.parent is None or message.parent.course_id != current_course(row).pk:
            raise DialogError(_("Only your last message can be edited, and only in the course it was written in."))
        message = message.parent
    return message


@transaction.atomic
def choose_branch(*, dialog: Dialog, message: Message) -> None:
    """Show this message instead of its sibling, with the newest branch below it."""
    row = _idle(lock(dialog))
    row.current_leaf = newest_leaf(message)
    row.answer_due = False
    forget(current_course(row))
    save(row, "current_leaf", "last_seq", "answer_due")


@transaction.atomic
def cancel_queued(*, dialog: Dialog, queued_id: int) -> None:
    """Delete a queued message. Raises DialogError when its turn has begun."""
    row = lock(dialog)
    deleted, _by_model = QueuedMessage.objects.filter(dialog=row, pk=queued_id).delete()
    if not deleted:
        raise DialogError(_("This message no longer waits: it was sent, or taken back already."))
    save(row)


@transaction.atomic
def request_stop(*, dialog: Dialog) -> None:
    """Ask the driver to end the running answer and keep what came. Where nobody drives, it ends at once.

    The dialog is then paused until the person goes on; between two turns that is the only effect.
    """
    row = lock(dialog)
    if not row.answer_due and not row.is_busy:
        return
    row.paused_by = PausedBy.PERSON
    if not row.answer_due:
        save(row, "paused_by")
        return
    if not row.is_busy or row.lease_until is None or row.lease_until < timezone.now():
        withdraw_open_calls(row)
        close_answer(row, "paused_by")
    else:
        row.stop_requested = True
        save(row, "stop_requested", "paused_by")


# --- Pause and go on: while a dialog is paused the driver answers messages, but does nothing else ---
@transaction.atomic
def pause(*, dialog: Dialog) -> None:
    """Pause: the answer under way ends, then the driver rests until a person presses *Go on*."""
    row = written_here(lock(dialog))
    row.paused_by = PausedBy.PERSON
    save(row, "paused_by")


@transaction.atomic
def go_on(*, dialog: Dialog) -> None:
    """Resume remediation, autonomous mode, or the turn that was ended because of its many rounds."""
    row = written_here(lock(dialog))
    was_working = row.paused_by == PausedBy.ROUNDS and row.current_leaf and row.current_leaf.role == Role.TOOL
    row.paused_by = PausedBy.NOBODY
    count_anew(row)
    if was_working and not row.is_busy:
        want_answer(row)
        return
    row.wake_seq += 1
    save(row, "paused_by", "wake_seq", "crashes", "counted_from")
    drive_on_commit(row.pk)


@transaction.atomic
def answer_question(*, dialog: Dialog, question_id: int, answer: str) -> None:
    """Answer the tool call that waits for it; after the last one the agent goes on."""
    text = clean_text(answer)
    row = written_here(lock(dialog))
    question = Question.objects.filter(dialog=row, pk=question_id).select_related("tool_call").first()
    if question is None or question.status != Status.PENDING:
        raise DialogError(_("This question no longer waits for an answer."))
    _close(out_of_trash(row), question, answer=text, result=text)
    count_anew(row)
    want_answer(row)


def answer_by_message(row: Dialog) -> None:
    """A typed message answers every open question."""
    for question in Question.objects.filter(dialog=row, status=Status.PENDING).select_related("tool_call"):
        _close(row, question, answer="", result=BY_MESSAGE)


def _close(row: Dialog, question: Question, *, answer: str, result: str) -> None:
    question.status, question.answer, question.answered_at = Status.ANSWERED, answer, timezone.now()
    question.save(update_fields=["status", "answer", "answered_at"])
    close_call(row, question.tool_call, ToolCall.Status.DONE, result)
