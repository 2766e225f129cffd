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

    `limit` None: nobody guards the agent, and everything is sent. `cost` None: an LLM has no known price. `share` None:
    the row as it is now holds another number of dialogs. `dialogs` is told only where rows differ in it.
    """

    limit: int | None
    chain: tuple[str, ...]
    numbers: dict[str, int]
    dialogs: int | None
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
    are_uneven = len({row.get("dialogs", 0) for row in what_if.rows}) > 1
    for row in what_if.rows:
        yield _row(row, now=what_if.rows[0], are_uneven=are_uneven, no_limit=no_limit)


def _row(row: dict[str, Any], *, now: dict[str, Any], are_uneven: bool, no_limit: int) -> Row:
    cost = row.get("cost")
    is_comparable = bool(now.get("tokens_sent")) and row.get("dialogs") == now.get("dialogs")
    return Row(
        limit=row["limit"] if row["limit"] < no_limit else None,
        chain=tuple(row["chain"]),
        numbers={name: value for name, value in row.items() if isinstance(value, int)},
        dialogs=row.get("dialogs", 0) if are_uneven else None,
        share=row["tokens_sent"] / now["tokens_sent"] if is_comparable else None,
        cost=None if cost is None or row.get("unpriced") else Decimal(cost),
        is_now=row is now,
    )
