"""A change to an LLM that has too little room for the present request: told beforehand, and compacted for first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db import transaction

from dialogs.compacting.guard import Guard, guard_of
from dialogs.compacting.present import present_tokens
from dialogs.models import LLM, Dialog
from dialogs.selectors.turns import dialog_to_drive
from dialogs.services import manual_compaction
from dialogs.services.rows import written_here
from health.models import CompactionRun


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """The present request, estimated as the new LLM counts, and the most that has room there."""

    llm: LLM
    tokens: int
    guard: Guard

    @property
    def room(self) -> int:
        return self.guard.room


def misfit_of(dialog: Dialog, llm: LLM) -> Misfit | None:
    """None where the request fits, where there is no less room than now, and where nothing is known of that LLM's
    window. May take a second: it counts."""
    answered = dialog_to_drive(dialog.pk)
    now = guard_of(answered)
    answered.llm = llm
    guard = guard_of(answered)
    if guard is None or answered.current_leaf is None or (now and now.room <= guard.room):
        return None
    tokens = present_tokens(answered)
    return Misfit(llm=llm, tokens=tokens, guard=guard) if tokens > guard.room else None


def compact_then_change(*, dialog: Dialog, misfit: Misfit, by: User) -> CompactionRun:
    """Compact with the LLM that answers now into the room of the other, which answers once the view holds.

    `dialogs.services.resuming` changes it. The room is told in tokens as the present LLM counts them.
    """
    written_here(dialog)
    counted = min(1.0, present_tokens(dialog_to_drive(dialog.pk)) / max(1, misfit.tokens))
    guard = replace(misfit.guard, limit=max(1, int(misfit.guard.limit * counted)))
    with transaction.atomic():
        run = manual_compaction.request(dialog=dialog, by=by, is_asked=False, guard=guard)
        run.then_llm = misfit.llm
        run.save(update_fields=["then_llm"])
    return run
