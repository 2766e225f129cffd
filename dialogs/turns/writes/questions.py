"""A person answers what the agent asked, in the box below the question or with an ordinary message."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import InvalidMessage
from dialogs.models import Dialog, Question, ToolCall
from dialogs.transcript.writes.cleaning import clean_text
from dialogs.transcript.writes.dialog_row import count_anew, lock, want_answer, written_here
from dialogs.turns.writes.tool_calls import close_call

BY_MESSAGE = "The person answers with the message that follows."
Status = Question.Status


@transaction.atomic
def answer_question(*, dialog: Dialog, question_id: int, answer: str) -> None:
    """Give the answer to the tool call that waits for it; when it was the last one, the agent goes on."""
    text = clean_text(answer)
    row = written_here(lock(dialog))
    question = Question.objects.filter(dialog=row, pk=question_id).select_related("tool_call").first()
    if question is None or question.status != Status.PENDING:
        raise InvalidMessage(_("This question no longer waits for an answer."))
    if row.trashed_at:
        raise InvalidMessage(_("This dialog is in the trash. Restore it to go on."))
    _close(row, question, status=Status.ANSWERED, answer=text, result=text)
    count_anew(row)
    want_answer(row)


def answer_by_message(row: Dialog) -> None:
    """The person typed a message instead: every pending question is answered by it."""
    for question in Question.objects.filter(dialog=row, status=Status.PENDING).select_related("tool_call"):
        _close(row, question, status=Status.ANSWERED, answer="", result=BY_MESSAGE)


def _close(row: Dialog, question: Question, *, status: str, answer: str, result: str) -> None:
    question.status, question.answer, question.answered_at = status, answer, timezone.now()
    question.save(update_fields=["status", "answer", "answered_at"])
    close_call(row, question.tool_call, ToolCall.Status.DONE, result)
