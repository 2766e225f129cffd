"""What is odd about limits and the pruning agent now: told on the settings page and by `check --database`."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import CheckMessage
from django.utils.translation import gettext as _

from dialogs.compaction.reads.context_settings import lost_pruning_agent
from dialogs.llms.reads.providers import choosable_agents, configured
from dialogs.models import LLM, Agent
from health.checks import budget_warnings, limit_warnings, type_warnings
from health.compaction.config import ContextConfig
from health.limits import effective_limit
from health.models import ContextSettings
from health.monitor.levels import context_window


def odd_limits(config: ContextConfig) -> Iterator[CheckMessage]:
    """A warning for each limit of an LLM or agent in use that makes little sense."""
    for llm in LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"):
        yield from limit_warnings(llm.slug, configured(llm))
        yield from type_warnings(llm.slug, llm.limit_type, config)
    for agent in choosable_agents().select_related("llm__provider"):
        if agent.context_budget or agent.llm.limit_type:
            yield from _odd_budget(agent, config)


def _odd_budget(agent: Agent, config: ContextConfig) -> Iterator[CheckMessage]:
    limit = agent.context_limit if agent.context_budget else None
    uncapped = effective_limit(config, agent_limit=limit, llm_type=agent.llm.limit_type, is_p1=agent.is_p1)
    window = context_window(configured(agent.llm))
    yield from budget_warnings(agent.name, uncapped, window=window)


def pruning_problem(settings: ContextSettings) -> str:
    """Why the chosen pruning agent does not prune; empty where it does, or none is chosen."""
    lost, chosen = lost_pruning_agent(settings), settings.pruning_agent
    if lost:
        return _("The chosen pruning agent “%(name)s” was deleted. Each dialog's own LLM prunes instead.") % {
            "name": lost
        }
    if chosen is None or choosable_agents().filter(pk=chosen.pk).exists():
        return ""
    return _(
        "The chosen pruning agent “%(name)s” cannot be used: it, its LLM or its provider is switched off. "
        "Each dialog's own LLM prunes instead."
    ) % {"name": chosen}
