"""Putting a proposed change into force, and taking it back: each leaves its line in the audit trail.

Both look first whether what they replace is still what it was, so that nobody's later change is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.compaction.settings.checking import faults_of
from dialogs.compaction.writes.context_settings import save_settings
from dialogs.learning.reads.proposals import least_limit, most_limit
from dialogs.llms.guard import by_limit
from dialogs.models import Agent, Dialog
from health.configured import context_config, context_settings
from health.models import Proposal, SettingsChange


class ProposalOutdated(DialogError):
    """Something else is in force by now."""


class InvalidProposal(DialogError):
    """What somebody made of it cannot be put into force."""


def limit_in_force(agent: Agent) -> dict[str, Any]:
    """The limit that is chosen for the agent, and what stands in its own fields."""
    one = Dialog(agent=agent, llm=agent.llm)
    chosen = by_limit(one).trace[0].tokens
    return {"limit": chosen, "own": agent.context_limit, "is_on": agent.context_budget}


def apply_limit(proposal: Proposal, change: Mapping[str, Any], *, by: User) -> None:
    agent = _agent(proposal)
    if limit_in_force(agent) != proposal.before:
        raise ProposalOutdated(_("The limit was changed meanwhile. Dismiss this proposal and look again."))
    least, most = least_limit(agent), most_limit(agent)
    if most is None or not least <= change["limit"] <= most:
        words = _("The limit must be from %(least)s to %(most)s: the window less what is kept for the answer.")
        raise InvalidProposal(words % {"least": f"{least:,}", "most": f"{most or 0:,}"})
    _set_limit(agent, own=change["limit"], is_on=True, by=by)


def restore_limit(proposal: Proposal, *, by: User) -> None:
    agent = _agent(proposal)
    if (agent.context_limit, agent.context_budget) != (proposal.accepted["limit"], True):
        raise ProposalOutdated(_("Somebody has changed it since. Nothing was undone."))
    _set_limit(agent, own=proposal.before["own"], is_on=proposal.before["is_on"], by=by)


def _agent(proposal: Proposal) -> Agent:
    return Agent.objects.select_for_update(of=("self",)).select_related("llm__provider").get(pk=proposal.agent_id or 0)


def _set_limit(agent: Agent, *, own: int | None, is_on: bool, by: User) -> None:
    for name, value in (("context_limit", own), ("context_budget", is_on)):
        before = getattr(agent, name)
        if before != value:
            key = f"agents.{agent.slug}.{name}"
            SettingsChange.objects.create(changed_by=by, key=key, before=_text(before), after=_text(value))
            setattr(agent, name, value)
    agent.save(update_fields=["context_limit", "context_budget"])


def _text(value: object) -> str:
    return "" if value is None else str(value).lower()


def apply_chain(proposal: Proposal, change: Mapping[str, Any], *, by: User) -> None:
    if list(context_config().chain_order) != proposal.before["chain"]:
        raise ProposalOutdated(_("The chain was changed meanwhile. Dismiss this proposal and look again."))
    _set_chain(change["chain"], by=by)


def restore_chain(proposal: Proposal, *, by: User) -> None:
    if list(context_config().chain_order) != proposal.accepted["chain"]:
        raise ProposalOutdated(_("Somebody has changed it since. Nothing was undone."))
    _set_chain(proposal.before["chain"], by=by)


def _set_chain(chain: list[str], *, by: User) -> None:
    config, row = replace(context_config(), chain_order=tuple(chain)), context_settings()
    fault = next(faults_of(config), None)
    if fault:
        raise InvalidProposal(fault[1])
    save_settings(config=config, pruning_agent=row.pruning_agent, by=by, version=row.version)
