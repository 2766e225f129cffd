"""An answer that was cut for a compaction, and a request that cannot be made. Both fenced by the lease."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from dialogs.compacting.guard import guard_of
from dialogs.compacting.present import present_tokens
from dialogs.models import Generation, Message
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin, Role
from dialogs.prompts import prompt
from dialogs.selectors.compaction import runs_of_turn
from dialogs.selectors.turns import dialog_to_drive
from dialogs.services.events import Code, log
from dialogs.services.generations import Answer, add_answer, close, read_health
from dialogs.services.lease import Claim, fenced
from dialogs.services.rows import add_message, close_answer, save
from health.compaction.reasons import Reason, Why, columns_of

CUT = "compaction"
REFUSED = "context_compaction_failed"


@transaction.atomic
def cut(held: Claim, *, generation: Generation, answer: Answer) -> Message:
    """Keep what came, and want the rest: the model is asked to go on from there (DL7). Calls that came are dropped."""
    row = fenced(held)
    kept = replace(answer, calls=(), finish_reason=CUT)
    partial = add_answer(row, generation, kept, cut_short=True)
    close(generation, Generation.Status.FINISHED, kept, partial)
    read_health(row, generation, kept)
    text = prompt("continuation", language=row.work_language)
    message = add_message(row, role=Role.USER, origin=MessageOrigin.CONTINUATION, content=text, parent=partial)
    save(row, "current_leaf", "last_seq")
    return message


@transaction.atomic
def refuse(held: Claim, *, why: Reason | None) -> None:
    """End the due answer because its request does not fit: recorded as a generation that failed before it was sent."""
    dialog = dialog_to_drive(held.dialog_id)
    # Counted before the row is locked: it may take a second.
    guard = guard_of(dialog)
    estimated = present_tokens(dialog) + (guard.reserve if guard else 0)
    row = fenced(held)
    leaf = row.current_leaf
    if leaf is None:
        return
    runs = runs_of_turn(leaf)
    limit = guard.limit if guard else 0
    why = why or Reason(Why.STILL_TOO_LONG, {"tokens": estimated, "limit": limit, "count": len(runs)})
    Generation.objects.create(
        dialog=row,
        course=leaf.course,
        number=Generation.objects.filter(course=leaf.course).count() + 1,
        turn=leaf.turn,
        llm=row.llm,
        llm_name=row.llm.slug,
        prompt_leaf=leaf,
        fencing_token=held.token,
        status=Generation.Status.FAILED,
        error_code=REFUSED,
        error_message=str(why),
        why=why.as_json(),
    )
    log(
        Code.TOKEN_LIMIT_EXCEEDED,
        row,
        run=runs[-1] if runs else None,
        estimated=estimated,
        limit=guard.limit if guard else None,
        compactions=len(runs),
        **columns_of(why),
    )
    row.paused_by = PausedBy.FAILURE
    close_answer(row, "paused_by")
