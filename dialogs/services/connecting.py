"""From a server that answers to somebody to talk to: provider, LLM and agent, made where they are missing."""

from __future__ import annotations

from django.db import transaction

from dialogs.models import Agent, Provider
from dialogs.providers.base import ModelFacts
from dialogs.selectors.providers import provider_at
from dialogs.services.providers import add_agent, add_llm, add_provider, set_api_key


@transaction.atomic
def connect(*, name: str, kind: str, label: str, base_url: str, api_key: str, facts: ModelFacts) -> Agent:
    """An agent for this model of the server at this address. What was switched off is switched on again."""
    provider = provider_at(kind=kind, base_url=base_url)
    if provider is None:
        provider = add_provider(name=_free_name(name), kind=kind, label=label, base_url=base_url, api_key=api_key)
    elif api_key:
        set_api_key(provider=provider, key=api_key)
    llm = add_llm(provider=provider, model_id=facts.model_id, facts=facts)
    agent = add_agent(llm=llm)
    for row in (provider, llm, agent):
        row.enabled = True
        row.save(update_fields=["enabled"])
    return agent


def _free_name(name: str) -> str:
    """`lmstudio`, then `lmstudio-2` for one on another machine."""
    free, number = name, 2
    while Provider.objects.filter(name=free).exists():
        free, number = f"{name}-{number}", number + 1
    return free
