"""What a person sees of a "what if": the agents to choose, the newest asked for, and its rows beside the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from dialogs.models import Agent, Dialog
from health.models import WhatIf


@dataclass(frozen=True, kw_only=True)
class Row:
    """One limit with one chain. Everything is estimated; `share` is of the tokens that are sent as it is now.

    `limit` None: nobody guards the agent, and everything is sent. `cost` None: an LLM has no known price.
    """

    limit: int | None
    chain: tuple[str, ...]
    numbers: dict[str, int]
    share: float | None
    cost: Decimal | None
    is_now: bool


def dialogs_of(owner: User, agent: Agent) -> QuerySet[Dialog, UUID]:
    """A person's own dialogs with an agent in which something was said, the newest first."""
    found = Dialog.objects.filter(owner=owner, agent=agent, trashed_at=None, current_leaf__isnull=False)
    return found.order_by("-active_at").values_list("pk", flat=True)


def agents_of(owner: User) -> QuerySet[Agent]:
    """Agents that this person has dialogs with."""
    said = Dialog.objects.filter(owner=owner, trashed_at=None, current_leaf__isnull=False)
    return Agent.objects.filter(pk__in=said.values("agent")).select_related("llm__provider")


def what_if_of(owner: User, what_if_id: int) -> WhatIf | None:
    return WhatIf.objects.select_related("agent__llm__provider").filter(owner=owner, pk=what_if_id).first()


def rows_of(what_if: WhatIf, *, no_limit: int) -> Iterator[Row]:
    now = what_if.rows[0].get("tokens_sent", 0) if what_if.rows else 0
    for at, row in enumerate(what_if.rows):
        yield _row(row, is_now=at == 0, now=now, no_limit=no_limit)


def _row(row: dict[str, Any], *, is_now: bool, now: int, no_limit: int) -> Row:
    cost = row.get("cost")
    return Row(
        limit=row["limit"] if row["limit"] < no_limit else None,
        chain=tuple(row["chain"]),
        numbers={name: value for name, value in row.items() if isinstance(value, int)},
        share=row.get("tokens_sent", 0) / now if now else None,
        cost=None if cost is None or row.get("unpriced") else Decimal(cost),
        is_now=is_now,
    )
