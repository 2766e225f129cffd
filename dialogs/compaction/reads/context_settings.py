"""What the settings page shows beside the settings: the pruning agents, and the audit trail."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet

from dialogs.llms.reads import choosable_agents, configured
from dialogs.models import LLM, Agent
from dialogs.models.agent import WhenFull
from health.compaction.terms import configuration
from health.configured import context_config
from health.models import ContextSettings, SettingsChange
from health.monitor.levels import Thresholds, context_window, thresholds

PRUNING_AGENT = "pruning_agent"
CHANGES_A_PAGE = 20


def pruning_agents(chosen: int | None) -> QuerySet[Agent]:
    """The agents that can be chosen to prune, and the one that is chosen, even where it no longer could be."""
    agents = Agent.objects.filter(Q(pk__in=choosable_agents().values("pk")) | Q(pk=chosen))
    return agents.select_related("llm__provider").order_by("name")


def agents_with_own_settings() -> list[Agent]:
    return list(Agent.objects.exclude(own_settings="").filter(is_direct=False).order_by("name"))


def own_settings() -> dict[str, str]:
    """The settings of their own that agents have, by short name: JSON of `configuration.load_own`."""
    return {agent.slug: agent.own_settings for agent in agents_with_own_settings()}


def when_full() -> dict[str, str]:
    """What comes first when a context fills, of all agents, by their short names."""
    agents = Agent.objects.filter(is_direct=False).order_by("name")
    return dict(agents.values_list("slug", "when_full"))


def exported() -> str:
    """The settings in force as a file: everybody's, and of agents what differs from that."""
    own = own_settings()
    first = {slug: one for slug, one in when_full().items() if slug in own or one != WhenFull.COMPACT}
    return configuration.dump(context_config(), own, first)


def lost_pruning_agent(settings: ContextSettings) -> str:
    """The slug of the chosen agent if it was deleted since: its row forgets, the audit trail does not."""
    if settings.pruning_agent is not None:
        return ""
    newest = SettingsChange.objects.filter(key=PRUNING_AGENT).first()
    return newest.after if newest else ""


def changes_page(number: str) -> Page[SettingsChange]:
    """One page of the audit trail, newest first; an invalid number is the first page."""
    return Paginator(SettingsChange.objects.select_related("changed_by"), CHANGES_A_PAGE).get_page(number)


def ceilings() -> Iterator[tuple[LLM, int | None, Thresholds | None]]:
    """Every LLM in use with its window and the ceilings of its levels, which are measured and set with the LLM."""
    for llm in LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"):
        window = context_window(configured(llm))
        yield llm, window, thresholds(configured(llm), window=window) if window else None
