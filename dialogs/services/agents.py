"""Somebody to talk to: agents that are made without anybody asking for them."""

from __future__ import annotations

from django.db import transaction

from dialogs.models import Agent, Provider
from dialogs.models.llm import Origin
from dialogs.selectors.providers import providers_ready_by_environment
from dialogs.services.providers import add_agent


@transaction.atomic
def ensure_agents() -> list[Agent]:
    """Where there is no agent but demos: one for the first LLM of every provider that the environment makes ready.

    Whoever sets a key, or names a file of models, expects to chat without a visit to the admin first.
    """
    if Agent.objects.filter(is_demo=False, is_direct=False).exists():
        return []
    from_file = Provider.objects.filter(origin=Origin.FILE, enabled=True, api_key_env="")
    ready = {provider.pk: provider for provider in (*providers_ready_by_environment(), *from_file)}
    first = (provider.llms.filter(enabled=True).order_by("pk").first() for provider in ready.values())
    return [add_agent(llm=llm) for llm in first if llm is not None]
