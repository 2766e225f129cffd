"""Records an answer that was cut for a compaction, and a request that cannot be made. Both fenced by the lease."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from dialogs.compaction.reads.compaction import FILLED, runs_of_turn
from dialogs.context.estimate import present_tokens
from dialogs.llms.guard import Guard, guard_of, is_off
from dialogs.models import Generation, Message
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message, close_answer, save
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import generations
from dialogs.turns.writes.events import Code, log
from dialogs.turns.writes.generations import Answer, add_answer, add_generation, close, read_health
from dialogs.turns.writes.lease import Claim, fenced
from health.compaction.terms.reasons import Reason, Why, columns_of, from_json
from health.models import CompactionRun

CUT = "compaction"
REFUSED, SWITCHED_OFF = "context_compaction_failed", "compaction_off"
# Any other run's reason says what it achieved.
IN_VAIN = (CompactionRun.Status.SKIPPED, CompactionRun.Status.FAILED)


@transaction.atomic
def cut(held: Claim, *, generation: Generation, answer: Answer) -> Message:
    """Store the cut text; the model is then asked to continue it. Calls in it are dropped."""
    row = fenced(held)
    kept = replace(answer, calls=(), finish_reason=CUT)
    partial = add_answer(row, generation, kept, cut_short=True)
    close(generation, Generation.Status.FINISHED, kept, partial)
    read_health(row, generation, kept)
    text = prompt("continuation", language=row.work_language)
    message = add_message(row, role=Role.USER, origin=MessageOrigin.CONTINUATION, content=text, parent=partial)
    save(row, "current_leaf", "last_seq")
    return message


def ask_again(held: Claim, *, generation: Generation, answer: Answer) -> None:
    """The cut answer has no text yet: nothing is stored, and it is requested again after a compaction."""
    nothing = replace(answer, calls=())
    generations.fail(held, generation=generation, answer=nothing, code=FILLED, error="", retry_in=0.0)


@transaction.atomic
def fill(held: Claim, *, generation: Generation, answer: Answer, tokens: int, window: int) -> None:
    """End an answer that fills the window, and say both numbers. Its text is stored, calls in it are dropped."""
    cut_off = replace(answer, calls=(), finish_reason="length")
    why = Reason(Why.FULL, {"tokens": tokens, "window": window})
    log(Code.TOKEN_LIMIT_EXCEEDED, generation.dialog, estimated=tokens, limit=window, **columns_of(why))
    generation.why = why.as_json()
    if cut_off.text.strip():
        generation.error_message = str(why)
        generations.finish(held, generation=generation, answer=cut_off, cut_short=True)
    else:
        generations.fail(held, generation=generation, answer=cut_off, code=FILLED, error=str(why), retry_in=None)


@transaction.atomic
def refuse(held: Claim, *, why: Reason | None) -> None:
    """End the due answer, as its request does not fit: recorded as a generation that failed before it was sent."""
    dialog = dialog_to_drive(held.dialog_id)
    # Counted before the row is locked: it may take a second.
    guard = guard_of(dialog)
    estimated = present_tokens(dialog) + (guard.reserve if guard else 0)
    row = fenced(held)
    leaf = row.current_leaf
    if leaf is None:
        return
    runs = runs_of_turn(leaf)
    why = why or _too_much(estimated, guard, runs)
    add_generation(
        row,
        held,
        leaf,
        status=Generation.Status.FAILED,
        error_code=SWITCHED_OFF if is_off(dialog) else REFUSED,
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


def _too_much(estimated: int, guard: Guard | None, runs: list[CompactionRun]) -> Reason:
    """Why a request that does not fit is not made, and why compaction did not help."""
    last = runs[-1] if runs and runs[-1].status in IN_VAIN else None
    sizes, other = _sizes(estimated, guard), from_json(last.why) if last else None
    return Reason(Why.NOT_HELPED, {"why": sizes, "other": other}) if other else sizes


def _sizes(estimated: int, guard: Guard | None) -> Reason:
    if guard is None:
        return Reason(Why.REQUEST_REFUSED, {"tokens": estimated})
    sizes = {"tokens": estimated, "limit": guard.told(guard.limit)}
    if guard.window is None:
        return Reason(Why.REQUEST_TOO_LARGE, sizes)
    return Reason(Why.REQUEST_OVER_WINDOW, {**sizes, "window": guard.window})
