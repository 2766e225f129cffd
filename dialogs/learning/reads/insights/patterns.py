"""Patterns of the last day, as the critic looks for them, with the proposal that waits because of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from dialogs.learning.reads.insights.scope import Scope
from dialogs.models import Agent
from health.critic.patterns import COHERENCE_DROP, LEAST, LEAST_COHERENCE, WINDOW, Finding, frequent
from health.models import Proposal

MOST = 10


@dataclass(frozen=True, kw_only=True)
class Pattern:
    agent: Agent
    finding: Finding
    proposal_id: int | None = None

    @property
    def code(self) -> str:
        """The code of its events; a drop in coherence is none."""
        return "" if self.finding.code == COHERENCE_DROP else self.finding.code


def patterns(owner_id: int | None, *, now: datetime) -> list[Pattern]:
    """The patterns in the events of one person's dialogs, or of everybody's; the most frequent first."""
    found = frequent(_counted(Scope(owner_id=owner_id, since=now - WINDOW)))[:MOST]
    agents = Agent.objects.in_bulk({one.agent_id for one in found})
    waiting = Proposal.objects.filter(status=Proposal.Status.OPEN, agent__in=agents)
    proposals = dict(waiting.order_by("id").values_list("agent", "id")) if found else {}
    return [
        Pattern(agent=agents[one.agent_id], finding=one, proposal_id=proposals.get(one.agent_id))
        for one in found
        if one.agent_id in agents
    ]


def _counted(scope: Scope) -> Counter[tuple[int, str]]:
    events = scope.events().filter(code__in=LEAST).values_list("code", "agent")
    drops = scope.runs().filter(coherence__lt=LEAST_COHERENCE).values_list("dialog__agent")
    return Counter(
        {(agent, code): count for code, agent, count in events.annotate(count=Count("*")) if agent}
        | {(agent, COHERENCE_DROP): count for agent, count in drops.annotate(count=Count("*"))}
    )
