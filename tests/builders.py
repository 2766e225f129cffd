"""Rows for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from dialogs.driver.writes.courses import open_course
from dialogs.llms.reads import configured
from dialogs.models import Course, Dialog, Generation, Message, Question, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.writes.generations import keep_blobs
from health.models import HealthReading
from health.monitor.levels import Usage, UsageUnavailable
from health.services import record_reading


def a_generation(dialog: Dialog, **fields: Any) -> Generation:
    """A generation that answers the dialog's current leaf; running unless said otherwise."""
    course = Course.objects.filter(dialog=dialog).latest("number")
    values: dict[str, Any] = {
        "number": Generation.objects.filter(course=course).count() + 1,
        "turn": 1,
        "llm": dialog.llm,
        "llm_name": dialog.llm.slug,
        "fencing_token": 1,
        "prompt_leaf": dialog.current_leaf,
    }
    return Generation.objects.create(dialog=dialog, course=course, **(values | fields))


def an_answer(dialog: Dialog, content: str = "Hi.", **generation: Any) -> Message:
    """The dialog's due answer, recorded with its generation; the dialog is idle afterwards."""
    dialog.refresh_from_db()
    made_by = a_generation(dialog, **({"status": Generation.Status.FINISHED} | generation))
    answer = add_message(
        dialog, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content=content, parent=dialog.current_leaf
    )
    made_by.message = answer
    made_by.save()
    dialog.answer_due = False
    dialog.handled_seq = dialog.wake_seq
    dialog.save()
    return answer


def a_reading(dialog: Dialog, prompt_tokens: int | None, **generation: Any) -> HealthReading:
    """The reading of an answer of this size, judged by the dialog's LLM; None for an answer without usage."""
    tokens = {} if prompt_tokens is None else {"prompt_tokens": prompt_tokens, "completion_tokens": 7}
    answer = an_answer(dialog, **(tokens | generation))
    usage = (
        UsageUnavailable()
        if prompt_tokens is None
        else Usage(prompt_tokens=prompt_tokens, completion_tokens=7, total_tokens=prompt_tokens + 7)
    )
    return record_reading(
        generation_id=answer.generation.pk,
        usage=usage,
        configured=configured(dialog.llm),
        window_source=dialog.llm.context_length_source,
    )


def a_course(dialog: Dialog, *, opened_by: str = "agent") -> Course:
    """The next course, with its first message; nobody is asked to answer it."""
    dialog.refresh_from_db()
    course = open_course(dialog, opened_by=Course.OpenedBy(opened_by))
    dialog.save()
    return course


def a_call(message: Message, **fields: Any) -> ToolCall:
    """One more tool call of an answer; pending unless said otherwise."""
    position = message.calls.count()
    values = {"position": position, "call_id": f"call_{position}", "name": "read_file", "arguments": "{}"}
    return ToolCall.objects.create(message=message, **(values | fields))


def a_question(dialog: Dialog, message: Message, text: str = "Which box?", **fields: Any) -> Question:
    """What the agent asks a person in this answer, waiting unless said otherwise."""
    call = a_call(message, name="ask_human", status="waiting")
    return Question.objects.create(dialog=dialog, tool_call=call, text=text, **fields)


def keep_blob(text: str) -> str:
    """The hash of a text that is kept."""
    return keep_blobs([text])[text]
