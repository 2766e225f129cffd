"""What the settings page shows besides the settings: who can prune, and who changed what when."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.paginator import Page, Paginator

from dialogs.models import LLM, Agent
from dialogs.selectors.agents import choosable_agents
from dialogs.selectors.providers import configured
from health.models import ContextSettings, SettingsChange
from health.monitor.levels import Thresholds, context_window, thresholds

PRUNING_AGENT = "pruning_agent"
CHANGES_A_PAGE = 20


def pruning_agents(chosen: Agent | None) -> list[Agent]:
    """Those that can be chosen, and the one that is, even where it could not be chosen any more."""
    found = list(choosable_agents().order_by("name"))
    return found if chosen is None or chosen in found else [*found, chosen]


def agents_with_own_settings() -> list[Agent]:
    return list(Agent.objects.exclude(own_settings="").filter(is_direct=False).order_by("name"))


def own_settings() -> dict[str, str]:
    """Of all agents that have some, by their short names: JSON of `configuration.load_own`."""
    return {agent.slug: agent.own_settings for agent in agents_with_own_settings()}


def lost_pruning_agent(settings: ContextSettings) -> str:
    """The slug of the chosen agent if it was deleted since: its row forgets, the audit trail does not."""
    if settings.pruning_agent is not None:
        return ""
    newest = SettingsChange.objects.filter(key=PRUNING_AGENT).first()
    return newest.after if newest else ""


def changes_page(number: str) -> Page[SettingsChange]:
    """One page of the audit trail, newest first; nonsense is the first page."""
    return Paginator(SettingsChange.objects.select_related("changed_by"), CHANGES_A_PAGE).get_page(number)


def ceilings() -> Iterator[tuple[LLM, int | None, Thresholds | None]]:
    """Every LLM in use with its window and the ceilings of its levels, which are measured and set with the LLM."""
    for llm in LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"):
        window = context_window(configured(llm))
        yield llm, window, thresholds(configured(llm), window=window) if window else None
