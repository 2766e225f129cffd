"""How far a dialog's task is, as one short block for the model: only where the window strategy may trim what told it.

In the driver's words and the agent's own, labelled as data.
"""

from __future__ import annotations

from dialogs.llms.guard import Guard, guard_of
from dialogs.models import Dialog
from health.compaction.snapshot import from_json

WINDOW = "sliding_window"


def task_block(dialog: Dialog, guard: Guard | None) -> str:
    """Empty where nobody is guarded, so that requests stay as they are, and where a client drives the dialog.

    `guard` is the dialog's, where the caller knows it already.
    """
    snapshot = None if dialog.is_client_driven else from_json(dialog.task_snapshot)
    guard = guard or (guard_of(dialog) if snapshot else None)
    if snapshot is None or guard is None or guard.off or WINDOW not in guard.chain:
        return ""
    return snapshot.block(limits=guard.config.payloads)
