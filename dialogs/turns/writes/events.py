"""What goes wrong with a dialog's context, recorded when it happens. Where nothing happens, nothing is asked."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from dialogs.models import Dialog
from dialogs.turns.state import Guarding
from dialogs.turns.writes import cleanup, over_hits
from dialogs.turns.writes.lease import Claim, fenced
from health.compaction.terms.pressure import Pressure
from health.events import record_event
from health.loops.patterns import EVERY_CALLS
from health.models import CompactionRun, ContextEvent

Code = ContextEvent.Code


def log(
    code: str,
    dialog: Dialog,
    *,
    run: CompactionRun | None = None,
    estimated: int | None = None,
    limit: int | None = None,
    **facts: Any,
) -> ContextEvent:
    """Record an event with the agent and LLM that the dialog has now: it may have others later."""
    return record_event(
        code,
        dialog_id=dialog.pk,
        owner_id=dialog.owner_id,
        agent_id=dialog.agent_id,
        llm_id=dialog.llm_id,
        run=run,
        estimated=estimated,
        limit=limit,
        facts=facts,
    )


@transaction.atomic
def note_pressure(held: Claim, guard: Guarding) -> bool:
    """A request is nearly too much, once a turn; or too much before anything was compacted, once a message.

    True for the latter, when it is new: whether the agent goes round in circles is looked for then, also after a crash.
    """
    row = fenced(held)
    leaf = row.current_leaf
    if leaf is None:
        return False
    if _once(Code.WARNING, row, guard, course=leaf.course_id, turn=leaf.turn):
        cleanup.open_if_frequent(row)
    if guard.pressure is Pressure.OVERFLOW and (over_hit := _once(Code.OVER_HIT, row, guard, message=leaf.pk)):
        over_hits.escalate(row, over_hit)
        row.unchecked_calls = EVERY_CALLS
        row.save(update_fields=["unchecked_calls"])
        return True
    return False


def _once(code: str, row: Dialog, guard: Guarding, **place: Any) -> ContextEvent | None:
    """`place` is where it happens in the dialog. None where that is known already: it is looked at many times."""
    known = {f"facts__{name}": value for name, value in place.items()}
    if ContextEvent.objects.filter(dialog=row, code=code, **known).exists():
        return None
    return log(code, row, estimated=guard.tokens, limit=guard.limit, **place)
