"""Rows for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from dialogs.models import Course, Dialog, Generation, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.services.rows import add_message


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
