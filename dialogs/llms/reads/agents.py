"""Which agents a new dialog can begin with."""

from __future__ import annotations

from django.db.models import QuerySet

from dialogs.models import Agent


def choosable_agents() -> QuerySet[Agent]:
    """Enabled ones whose LLM and provider are enabled too; demos last. Those that stand for an LLM are no choice."""
    return Agent.objects.filter(
        is_direct=False, enabled=True, llm__enabled=True, llm__provider__enabled=True
    ).select_related("llm__provider")
