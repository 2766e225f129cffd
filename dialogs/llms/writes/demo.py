"""The demo's rows: the provider at the embedded server, its one LLM, and the agent that says it is a demo."""

from __future__ import annotations

from django.db import transaction

from dialogs.llms.writes.providers import record_limits, small_window_ceiling
from dialogs.models import LLM, Agent, Provider
from dialogs.models.llm import Origin, ProviderKind, ToolCalling
from dialogs.providers.base import ModelFacts

NAME = "demo"
# A paragraph: seven such answers fill the window, so that a chat of a dozen messages is compacted twice, and most of it
# stands each time.
MAX_OUTPUT_TOKENS = 128
DESCRIPTION = "A very small model that runs on this machine. For trying things out: do not trust its answers."
INSTRUCTIONS = "You are a friendly demo assistant. Answer in a few short sentences."


@transaction.atomic
def install_demo(*, base_url: str, model_id: str, context_window: int) -> Agent:
    """Point the demo at the server that was just configured. What an admin changed about its text stays."""
    provider = _place_provider(base_url)
    llm, _ = LLM.objects.get_or_create(
        provider=provider, model_id=model_id, defaults={"label": "SmolLM2 135M (demo)", "origin": Origin.DEMO}
    )
    _set_window(llm, context_window=context_window)
    _offer_no_tools(llm)
    agent, _ = Agent.objects.get_or_create(
        slug=NAME,
        defaults={
            "name": "SmolLM2",
            "description": DESCRIPTION,
            "instructions": INSTRUCTIONS,
            "llm": llm,
            "max_output_tokens": MAX_OUTPUT_TOKENS,
            "is_demo": True,
        },
    )
    Agent.objects.filter(pk=agent.pk).update(enabled=True)
    return agent


def _place_provider(base_url: str) -> Provider:
    """Known by its origin: an admin may have a provider of that name."""
    provider = Provider.objects.filter(origin=Origin.DEMO).first()
    if provider is None:
        taken = Provider.objects.filter(name=NAME).exists()
        name = f"embedded-{NAME}" if taken else NAME
        # The demo's server answers one request at a time.
        provider = Provider(name=name, label="Demo (this machine)", origin=Origin.DEMO, max_concurrent=1)
    provider.kind, provider.base_url, provider.enabled = ProviderKind.LLAMACPP, base_url, True
    provider.save()
    return provider


def retire_demo() -> None:
    """The embedded server does not run: nobody can start a dialog with the demo; its dialogs stay."""
    Provider.objects.filter(origin=Origin.DEMO).update(enabled=False)
    Agent.objects.filter(slug=NAME, is_demo=True).update(enabled=False)


def _set_window(llm: LLM, *, context_window: int) -> None:
    """The window is the server's; the ceiling follows it unless an admin chose another."""
    if llm.optimal_max_tokens == small_window_ceiling(llm.context_length):
        LLM.objects.filter(pk=llm.pk).update(optimal_max_tokens=None)
    record_limits(llm=llm, facts=ModelFacts(model_id=llm.model_id, context_length=context_window))


def _offer_no_tools(llm: LLM) -> None:
    """Our tools would fill the window of a demo model, which cannot use them. Written once: an admin may offer them
    again.
    """
    llm.refresh_from_db()
    if "tool_calling" not in llm.catalogue_values:
        llm.tool_calling = ToolCalling.OFF
        llm.catalogue_values = {**llm.catalogue_values, "tool_calling": ToolCalling.OFF}
        llm.save(update_fields=["tool_calling", "catalogue_values"])
