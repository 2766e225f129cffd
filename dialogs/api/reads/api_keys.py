"""Keys, for their owner's page and for the requests that come with one; and what these can ask for as a model."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, QuerySet

from dialogs.llms.reads import choosable_agents, missing_key
from dialogs.models import LLM, Agent, ApiKey
from dominds.prepared import prepared


def fingerprint(secret: str) -> str:
    """What is kept of a secret. It is random and has 256 bits, so it cannot be guessed: no slow hash is needed."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def keys_of(user: User) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(owner=user)


def key_with(secret: str) -> ApiKey | None:
    """The key, usable or not, with its owner.

    It is looked up by its hash: how long that takes tells at most how a hash begins, and from that nobody
    finds a secret. There is nothing to compare in constant time.
    """
    return _with_hash.first(fingerprint(secret))


@prepared(CharField())
def _with_hash(sha256: Any) -> QuerySet[ApiKey]:
    return ApiKey.objects.select_related("owner").filter(sha256=sha256).order_by()


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
