"""What settings that are not saved yet would have done to stored dialogs. Reads and estimates; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from django.contrib.auth.models import User
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from dialogs.context.estimate import growth_of
from dialogs.llms.guard import Guard, config_of, guard_of
from dialogs.models import Dialog
from dialogs.transcript.reads.dialogs import list_dialogs
from health.compaction.config import ContextConfig
from health.compaction.terms.pressure import tokens
from health.limits import Term

MOST_DIALOGS = 20
# For all dialogs together: a person waits for the page.
MOST_SECONDS = 4.0
TERMS: dict[str, Promise] = {
    "agent": gettext_lazy("agent"),
    "LLM": gettext_lazy("LLM type"),
    "default": gettext_lazy("default limit"),
    "P1 agent": gettext_lazy("P1 agent"),
    "floor": gettext_lazy("floor"),
    "window": gettext_lazy("window"),
}


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One dialog under these settings. Every number is estimated; without a guard there are none.

    `begins_at` is the message with which the current course first exceeded `begins_above`, None where it never did.
    """

    dialog: Dialog
    guard: Guard | None = None
    begins_above: int = 0
    estimated: int = 0
    begins_at: int | None = None
    messages: int = 0

    @property
    def trace(self) -> str:
        return traced(self.guard.trace) if self.guard else ""


def what_if(config: ContextConfig, *, owner: User) -> Iterator[WhatIf]:
    """This person's newest dialogs, nobody else's, as far as the time suffices."""
    until = monotonic() + MOST_SECONDS
    for dialog in list_dialogs(user=owner).select_related("current_leaf")[:MOST_DIALOGS]:
        if monotonic() > until:
            return
        guard = guard_of(dialog, config_of(dialog, config))
        yield _under(guard, dialog) if guard else WhatIf(dialog=dialog)


def _under(guard: Guard, dialog: Dialog) -> WhatIf:
    growth = growth_of(dialog, reserve=guard.reserve)
    above = tokens(guard.config.warning_threshold, guard.limit)
    return WhatIf(
        dialog=dialog,
        guard=guard,
        begins_above=above,
        estimated=growth.totals[-1],
        begins_at=growth.begins_at(above),
        messages=len(growth.sizes),
    )


def traced(trace: Iterable[Term]) -> str:
    """Where a limit comes from: "default limit 5,000 → window 3,686"."""
    return " → ".join(f"{TERMS.get(term.what, term.what)} {term.tokens:,}" for term in trace)
