"""The proposals page: open proposals, and the newest decided ones with what happened since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from dialogs.llms.guard import config_of, room_of
from dialogs.models import Agent, Dialog
from health.limits import P1_FACTOR_PERCENT
from health.models import ContextEvent, Proposal

MOST_DECIDED = 20
# In the order of the table: what a person asks first.
SHOWN = ("over_hits", "failures", "compactions", "tokens_removed", "tokens_sent")


@dataclass(frozen=True, kw_only=True)
class ProposalCard:
    """A proposal with what its card says beside it. `effects` are (name, now, then); `since` are over-hits since."""

    row: Proposal
    effects: tuple[tuple[str, int, int], ...] = ()
    least: int = 0
    most: int | None = None
    since: int | None = None


def open_proposals() -> Iterator[ProposalCard]:
    for row in _proposals().filter(status=Proposal.Status.OPEN):
        least, most = (least_limit(row.agent), most_limit(row.agent)) if row.agent else (0, None)
        yield ProposalCard(row=row, effects=_effects(row), least=least, most=most)


def decided_proposals() -> Iterator[ProposalCard]:
    """The newest decision first; for an accepted limit with the over-hits since."""
    decided = _proposals().exclude(status=Proposal.Status.OPEN).order_by("-decided_at")
    for row in decided[:MOST_DECIDED]:
        yield ProposalCard(row=row, since=_over_hits_since(row))


def _proposals() -> QuerySet[Proposal]:
    return Proposal.objects.select_related("agent__llm__provider", "decided_by")


def least_limit(agent: Agent) -> int:
    return config_of(Dialog(agent=agent, llm=agent.llm)).min_limit


def most_limit(agent: Agent) -> int | None:
    """The highest limit that fits the window, also after the fifth that a P1 agent gets on top; None: window
    unknown."""
    room = room_of(Dialog(agent=agent, llm=agent.llm))
    return room * 100 // P1_FACTOR_PERCENT if room and agent.is_p1 else room


def _effects(row: Proposal) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, *row.expected[name]) for name in SHOWN if name in row.expected)


def _over_hits_since(row: Proposal) -> int | None:
    if row.status != Proposal.Status.ACCEPTED or row.kind != Proposal.Kind.LIMIT or row.decided_at is None:
        return None
    over_hits = ContextEvent.objects.filter(code=ContextEvent.Code.OVER_HIT, happened_at__gt=row.decided_at)
    return over_hits.filter(agent=row.agent).count()
