"""What a client can ask for as a model: every agent, by its slug, and every LLM, as `provider/model`."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, QuerySet

from dialogs.llms.reads import choosable_agents, missing_key
from dialogs.models import LLM, Agent
from dominds.prepared import prepared


def offered_agents() -> QuerySet[Agent]:
    """The agents that a person can begin a dialog with, each with its LLM, provider, bounds and calibration."""
    return choosable_agents().select_related("llm__provider", "llm__bounds", "llm__calibration")


def listed_agents() -> list[Agent]:
    """The offered agents whose LLM's provider has a key or needs none."""
    return [agent for agent in offered_agents() if not missing_key(agent.llm.provider)]


def offered_llms() -> QuerySet[LLM]:
    found = LLM.objects.filter(enabled=True, provider__enabled=True)
    return found.select_related("provider", "bounds", "calibration")


def listed_llms() -> list[LLM]:
    """The offered LLMs whose provider has a key or needs none. A request for another is told what that one lacks."""
    return [llm for llm in offered_llms() if not missing_key(llm.provider)]


def offered_agent(slug: str) -> Agent | None:
    return _offered_agent.first(slug)


def direct_agent_of(*, provider: str, model_id: str) -> Agent | None:
    """The agent that holds the conversations with an offered LLM; None before a client has asked for that LLM."""
    return _direct_agent.first(provider, model_id)


@prepared(CharField())
def _offered_agent(slug: Any) -> QuerySet[Agent]:
    return offered_agents().filter(slug=slug).order_by()


@prepared(CharField(), CharField())
def _direct_agent(provider: Any, model_id: Any) -> QuerySet[Agent]:
    agents = Agent.objects.select_related("llm__provider", "llm__bounds", "llm__calibration").filter(
        is_direct=True,
        llm__enabled=True,
        llm__model_id=model_id,
        llm__provider__enabled=True,
        llm__provider__name=provider,
    )
    return agents.order_by()


def offered_models() -> list[str]:
    """Ids of agents and LLMs, agents first. An LLM's has a slash and an agent's has none, so no two are the same."""
    return [agent.slug for agent in offered_agents()] + [llm.slug for llm in offered_llms()]
