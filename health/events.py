"""What went wrong with a context is written here and nowhere else. No text of a dialog goes into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from health.models import CompactionRun, ContextEvent


def record_event(
    code: str,
    *,
    dialog_id: UUID,
    owner_id: int | None,
    agent_id: int | None,
    llm_id: int | None,
    run: CompactionRun | None = None,
    estimated: int | None = None,
    limit: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> ContextEvent:
    """`estimated` and `limit` are tokens as they were counted then; `facts` are numbers and names beside them."""
    return ContextEvent.objects.create(
        code=code,
        dialog_id=dialog_id,
        owner_id=owner_id,
        agent_id=agent_id,
        llm_id=llm_id,
        run=run,
        estimated=estimated,
        limit=limit,
        facts=dict(facts or {}),
    )
