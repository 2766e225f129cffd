"""`GET /v1/models`: every agent and every LLM that a key may use and that can be asked, with the limit that holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialogs.api.auth import may_use
from dialogs.api.errors import model_not_found
from dialogs.compacting.guard import active_guard
from dialogs.models import LLM, Agent, ApiKey, Dialog
from dialogs.selectors.offered import direct_agents, listed_agents, listed_llms, offered_agents, offered_llms
from dialogs.selectors.providers import configured, loaded_window
from dialogs.services.client_turns import Target, direct_agent
from health.monitor.levels import context_window


def list_models(key: ApiKey) -> dict[str, Any]:
    return {"object": "list", "data": [one for one in _entries() if may_use(key, one["id"])]}


def one_model(key: ApiKey, model: str) -> dict[str, Any]:
    """Raises ApiError, 404."""
    found = next((one for one in _entries() if one["id"] == model and may_use(key, model)), None)
    if found is None:
        raise model_not_found(model)
    return found


def target_of(key: ApiKey, model: str) -> Target:
    """Who answers under this id. Raises ApiError, 404."""
    if may_use(key, model):
        provider, _slash, model_id = model.partition("/")
        found = _llm_of(provider, model_id) if model_id else _agent_of(model)
        if found:
            return found
    raise model_not_found(model)


def _agent_of(slug: str) -> Target | None:
    agent = next(iter(offered_agents().filter(slug=slug).order_by()), None)
    return Target(agent, agent.llm) if agent else None


def _llm_of(provider: str, model_id: str) -> Target | None:
    """With the agent that stands for it, which is made when it is first spoken to."""
    agent = next(iter(direct_agents(provider=provider, model_id=model_id).order_by()), None)
    if agent:
        return Target(agent, agent.llm)
    llm = next(iter(offered_llms().filter(provider__name=provider, model_id=model_id).order_by()), None)
    return Target(direct_agent(llm), llm) if llm else None


def _entries() -> Iterator[dict[str, Any]]:
    for agent in listed_agents():
        yield _entry(agent.slug, agent, agent.llm, created=agent.created_at.timestamp(), owned_by="dominds")
    for llm in listed_llms():
        created = llm.provider.created_at.timestamp()
        yield _entry(llm.slug, Agent(llm=llm), llm, created=created, owned_by=llm.provider.name)


def _entry(model: str, agent: Agent, llm: LLM, *, created: float, owned_by: str) -> dict[str, Any]:
    """The limit stands under the three names that clients look for; null where it is not known."""
    window = loaded_window(llm) or context_window(configured(llm))
    guard = active_guard(Dialog(agent=agent, llm=llm))
    limit = guard.limit if guard else window
    return {
        "id": model,
        "object": "model",
        "created": int(created),
        "owned_by": owned_by,
        "context_length": limit,
        "max_model_len": limit,
        "context_window": limit,
        "dominds": {"context_length_is": _meaning(limit, guarded=guard is not None), "window": window},
    }


def _meaning(limit: int | None, *, guarded: bool) -> str:
    if limit is None:
        return "unknown"
    return "kept_to" if guarded else "window"
