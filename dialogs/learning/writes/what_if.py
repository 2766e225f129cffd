"""Every write of a "what if": asking for one, holding it while it is worked at, keeping what came of it.

It is never put into force, and only the newest few of a person are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from dialogs.common.schedule import replay_on_commit
from dialogs.learning.what_if.variants import dialogs_of
from dialogs.models import Agent
from health.models import WhatIf
from health.models.claims import claimed_until, is_over

Status = WhatIf.Status
OPEN = (Status.QUEUED, Status.RUNNING)
MOST_KEPT = 5


@dataclass(frozen=True)
class Claim:
    what_if_id: int
    token: int


@transaction.atomic
def ask(*, owner: User, agent: Agent, rows: Sequence[dict[str, Any]], most_dialogs: int) -> WhatIf:
    """The newest dialogs of this person with the agent, once for every row. Whatever was under way before ends."""
    before = WhatIf.objects.select_for_update().filter(owner=owner)
    before.filter(status__in=OPEN).update(status=Status.CANCELLED, finished_at=timezone.now())
    before.filter(pk__in=list(before.values_list("pk", flat=True)[MOST_KEPT - 1 :])).delete()
    dialogs = [str(one) for one in dialogs_of(owner, agent)[:most_dialogs]]
    row = WhatIf.objects.create(owner=owner, agent=agent, dialogs=dialogs, rows=list(rows))
    replay_on_commit(row.pk)
    return row


def cancel(row: WhatIf) -> None:
    WhatIf.objects.filter(pk=row.pk, status__in=OPEN).update(status=Status.CANCELLED, finished_at=timezone.now())


def claim(what_if_id: int) -> Claim | None:
    """Claim the "what if", if nobody works at it."""
    taken = WhatIf.objects.filter(Q(claimed_until=None) | is_over(), pk=what_if_id, status__in=OPEN).update(
        status=Status.RUNNING, claim_token=F("claim_token") + 1, claimed_until=claimed_until()
    )
    return Claim(what_if_id, WhatIf.objects.get(pk=what_if_id).claim_token) if taken else None


def keep(held: Claim, *, rows: Sequence[dict[str, Any]], done: int) -> bool:
    """Keep one more replay. False: somebody cancelled the "what if", or another worker has it now."""
    return bool(_held(held).update(rows=list(rows), done=done, claimed_until=claimed_until()))


def finish(held: Claim, status: str) -> None:
    _held(held).update(status=status, finished_at=timezone.now())


def leave(held: Claim) -> bool:
    """Let another go on with it; whether there is anything to go on with."""
    return bool(_held(held).update(claimed_until=timezone.now()))


def _held(held: Claim):  # type: ignore[no-untyped-def]  # a QuerySet, whose type needs the manager's
    return WhatIf.objects.filter(pk=held.what_if_id, claim_token=held.token, status=Status.RUNNING)
