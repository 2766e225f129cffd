"""Which events or numbers an address asks for: of which code, agent and LLM, since when. For events and Insights."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dialogs.transcript.views import key_in
from dialogs.turns.reads.events import Filter
from health.models import ContextEvent

DAYS = 30
PERIODS = {"1": _("The last day"), "7": _("The last 7 days"), str(DAYS): _("The last 30 days"), "": _("All time")}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Nonsense is read as the default, never an error."""

    code: str
    agent: int
    llm: int
    days: str

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        code, days = query.get("code", ""), query.get("days", str(DAYS))
        return cls(
            code=code if code in ContextEvent.Code.values else "",
            agent=key_in(query, "agent"),
            llm=key_in(query, "llm"),
            days=days if days in PERIODS else str(DAYS),
        )

    @property
    def filter(self) -> Filter:
        since = timezone.now() - timedelta(days=int(self.days)) if self.days else None
        return Filter(code=self.code, agent_id=self.agent or None, llm_id=self.llm or None, since=since)

    def url(self, name: str, **more: Any) -> str:
        values = {"code": self.code, "agent": self.agent, "llm": self.llm, "days": self.days} | more
        return f"{reverse(name)}?{urlencode({key: value for key, value in values.items() if value or key == 'days'})}"
