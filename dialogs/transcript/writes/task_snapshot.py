"""Updates the snapshot of a dialog's task: begun, acted, observed, completed. For a locked row.

Each change is saved at once, to this column only, so callers need not save it. Without a task, as in a client's dialog,
nothing is noted.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.models import Dialog, ToolCall
from dialogs.transcript.writes.dialog_row import clean_text, lock, save, written_here
from health.compaction.snapshot import COMPLETED, EXECUTING, TaskSnapshot, as_json, asks_for_something, begun, from_json

Change = Callable[[TaskSnapshot], TaskSnapshot]


def begin(row: Dialog, goal: str) -> None:
    """Begin a new task, however the last one ended."""
    _write(row, begun(goal))


def go_on(row: Dialog, said: str) -> None:
    """A person wrote a message. It is the goal where no task has begun, the last one is completed, or nothing was asked
    and done so far."""
    now = _now(row)
    if now is None or now.current_phase == COMPLETED or not (now.actions_in_all or asks_for_something(now.goal)):
        begin(row, said)


@transaction.atomic
def set_goal(*, dialog: Dialog, goal: str) -> None:
    """A person edits the goal; the actions stay. Raises DialogError where no task has begun."""
    text = clean_text(goal)
    row = written_here(lock(dialog))
    if _now(row) is None:
        raise DialogError(_("No task has begun in this dialog."))
    _change(row, lambda now: now.updated(goal=begun(text).goal))
    save(row)


def say_anew(row: Dialog, *, before: str, goal: str) -> None:
    """A person edits a message: if it was the goal, the task begins again."""
    now = _now(row)
    if now is None or now.goal == begun(before).goal:
        begin(row, goal)


def reset(row: Dialog) -> None:
    """End the task: the person's next message begins a new one. What was done stays in the record."""
    _write(row, None)


def note_call(row: Dialog, call: ToolCall) -> None:
    """Note a call as an action; a failed one also as an observation."""
    if call.status == ToolCall.Status.DONE:
        _change(row, lambda now: now.acted(call.name))
    elif call.status in (ToolCall.Status.FAILED, ToolCall.Status.INTERRUPTED):
        _change(row, lambda now: now.observed(f"{call.name} failed: {call.result}"))


def observe(row: Dialog, text: str) -> None:
    _change(row, lambda now: now.observed(text))


def complete(row: Dialog, summary: str) -> None:
    """The agent says that the goal is reached."""
    _change(row, lambda now: (now.observed(summary) if summary.strip() else now).updated(current_phase=COMPLETED))


def reopen(row: Dialog) -> None:
    """Take back that the task was completed."""
    _change(row, lambda now: now.updated(current_phase=EXECUTING))


def _change(row: Dialog, change: Change) -> None:
    now = None if row.is_client_driven else _now(row)
    if now is not None:
        _write(row, change(now))


def _now(row: Dialog) -> TaskSnapshot | None:
    """The stored snapshot: another copy of the same locked row may have written one since this row was read."""
    return from_json(Dialog.objects.values_list("task_snapshot", flat=True).get(pk=row.pk))


def _write(row: Dialog, snapshot: TaskSnapshot | None) -> None:
    row.task_snapshot = as_json(snapshot) if snapshot else {}
    row.save(update_fields=["task_snapshot"])
