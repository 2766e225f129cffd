"""Whose numbers, of which agent and LLM, since when: the three tables that tell of it, cut to that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from django.db.models import F, Model, QuerySet

from health.models import CompactionRun, ContextEvent, HealthReading

Row = TypeVar("Row", bound=Model)
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
A_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """None: everybody's, any agent, any LLM, from the beginning."""

    owner_id: int | None = None
    agent_id: int | None = None
    llm_id: int | None = None
    since: datetime | None = None

    def of(self, *, agent_id: int, llm_id: int) -> Scope:
        return replace(self, agent_id=agent_id, llm_id=llm_id)

    def events(self) -> QuerySet[ContextEvent]:
        rows = ContextEvent.objects.order_by()
        return self._cut(rows, owner="owner", agent="agent", llm="llm", when="happened_at")

    def runs(self) -> QuerySet[CompactionRun]:
        """A run is of the agent and the LLM that its dialog has now."""
        rows = CompactionRun.objects.order_by()
        return self._cut(rows, owner="dialog__owner", agent="dialog__agent", llm="dialog__llm", when="queued_at")

    def readings(self) -> QuerySet[HealthReading]:
        """The readings with a number: those without are of providers that report no usage."""
        rows = HealthReading.objects.filter(prompt_tokens__isnull=False).order_by()
        dialog = "generation__dialog"
        if self.since:
            # Those of dialogs that rested all the time need not be looked at. No turn takes a day.
            rows = rows.filter(generation__dialog__active_at__gte=self.since - A_DAY)
        return self._cut(
            rows, owner=f"{dialog}__owner", agent=f"{dialog}__agent", llm="generation__llm", when="read_at"
        )

    def _cut(self, rows: QuerySet[Row], *, owner: str, agent: str, llm: str, when: str) -> QuerySet[Row]:
        wanted: dict[str, Any] = {
            owner: self.owner_id,
            agent: self.agent_id,
            # Always some: else SQLite takes an index without the moment, in which not all is that is counted.
            f"{when}__gte": self.since or BEGINNING,
        }
        if self.llm_id is not None:
            # As a sum it hides from SQLite an index that is no help: one LLM has most of the rows.
            rows = cast("QuerySet[Row]", rows.alias(the_llm=F(llm) + 0).filter(the_llm=self.llm_id))
        return rows.filter(**{name: value for name, value in wanted.items() if value is not None})
