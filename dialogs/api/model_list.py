"""`GET /v1/models`: the agents and LLMs that a key may use and whose provider is ready, with their limits.

And `POST /v1/tokens/count`: the estimated tokens of messages for one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialogs.api.auth import may_use
from dialogs.api.errors import model_not_found
from dialogs.api.reads.api_keys import (
    direct_agent_of,
    listed_agents,
    listed_llms,
    offered_agent,
    offered_agents,
    offered_llms,
)
from dialogs.api.schemas import CountBody
from dialogs.api.writes.client_turns import Target, direct_agent
from dialogs.context.estimate import overhead
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import active_guard, known_window
from dialogs.models import LLM, Agent, ApiKey, Dialog
from health.compaction.terms.ports import text_sizes
from health.compaction.terms.wire import attached_to, text_of
from health.tokens.corrected import likely_of
from health.tokens.images import media_tokens


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


def counted(key: ApiKey, body: CountBody) -> dict[str, Any]:
    """By the sum that the guard reckons with, without its margin. Raises ApiError, 404."""
    llm = _llm_to_count(key, body.model)
    counter, tools = likely_of(counter_of(llm)), [tool.model_dump(exclude_none=True) for tool in body.tools or ()]
    messages = [message.model_dump(exclude_none=True) for message in body.messages or ()]
    sizes = text_sizes([(text_of(message), attached_to(message)) for message in messages], counter)
    whole = sum(sizes) + sum(media_tokens(message, llm.model_id) for message in messages)
    tokens = counter.count([body.text])[0] if body.text is not None else whole + overhead(llm, tools, counter)
    told = {"tokens": tokens, "counter": counter.name, "grade": str(counter.grade)}
    return {"object": "tokens.count", "model": body.model, "kind": "estimated", **told}


def _llm_to_count(key: ApiKey, model: str) -> LLM:
    """Creates no agent that stands for the LLM."""
    provider, _slash, model_id = model.partition("/")
    llms = offered_llms().filter(provider__name=provider, model_id=model_id)
    agents = offered_agents().filter(slug=model)
    found = next(iter(llms.order_by()), None) if model_id else next((one.llm for one in agents.order_by()), None)
    if found is None or not may_use(key, model):
        raise model_not_found(model)
    return found


def _agent_of(slug: str) -> Target | None:
    agent = offered_agent(slug)
    return Target(agent, agent.llm) if agent else None


def _llm_of(provider: str, model_id: str) -> Target | None:
    """With the agent that stands for it, which is created at its first use."""
    agent = direct_agent_of(provider=provider, model_id=model_id)
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
    """The limit has the three names that clients look for; null if it is unknown."""
    dialog = Dialog(agent=agent, llm=llm)
    window, guard = known_window(dialog).window, active_guard(dialog)
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
