"""Agents in the admin: a name, instructions, the LLM that follows them, and how long their context may grow."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dialogs.admin.base import KeepsDialogs
from dialogs.admin.forms import AgentForm
from dialogs.agents.tools.workspace import folder_of
from dialogs.compaction.settings.what_if import traced
from dialogs.llms.guard import config_of, guard_of
from dialogs.llms.words import kept_by_agent
from dialogs.models import Agent, Dialog
from health.compaction.config import chain_for

# LLM types that begin so run on a person's own machine, with small windows.
LOCAL = "local_"
LOCAL_WORDS = _("Off for new agents, except on an LLM whose limit type begins with “local_”.")


@admin.register(Agent)
class AgentAdmin(KeepsDialogs):
    dialogs_by = "agent"
    form = AgentForm
    list_display = ("name", "slug", "llm", "enabled", "is_demo")
    list_filter = ("enabled", "llm__provider")
    list_select_related = ("llm",)
    search_fields = ("name", "slug", "description")
    prepopulated_fields = {"slug": ("name",)}
    filter_horizontal = ("mcp_servers",)
    readonly_fields = ("kept", "effective_limit", "chain", "folder", "is_demo", "created_at")
    fieldsets = (
        (None, {"fields": (("name", "slug"), "description", "enabled")}),
        (_("What it does"), {"fields": ("llm", "instructions", "max_output_tokens")}),
        (
            _("Context"),
            {
                "fields": (
                    "compaction",
                    "when_full",
                    "kept",
                    ("context_budget", "context_limit", "is_p1"),
                    "effective_limit",
                ),
                "description": LOCAL_WORDS,
            },
        ),
        (_("How it is compacted"), {"fields": ("own", "chain")}),
        (_("Tools"), {"fields": (("workspace_enabled", "folder"), "mcp_servers")}),
        (_("Record"), {"fields": (("is_demo", "created_at"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Without the hidden agents that only stand for an LLM: clients would ask for nothing that is set on them."""
        return super().get_queryset(request).filter(is_direct=False)

    @admin.display(description=_("its folder"))
    def folder(self, row: Agent) -> str:
        """The folder in which an admin puts files for this agent."""
        return str(folder_of(row)) if row.slug else "—"

    @admin.display(description=_("kept from overflowing"))
    def kept(self, row: Agent) -> str:
        return kept_by_agent(row) if row.pk else "—"

    @admin.display(description=_("in force"))
    def effective_limit(self, row: Agent) -> str:
        """The limit that a new dialog with this agent has, and where it comes from."""
        guard = guard_of(Dialog(agent=row, llm=row.llm)) if row.pk else None
        return f"{guard.limit:,} ({traced(guard.trace)})" if guard else str(_("no limit"))

    @admin.display(description=_("strategies that run"))
    def chain(self, row: Agent) -> str:
        guard = guard_of(Dialog(agent=row, llm=row.llm)) if row.pk else None
        names = guard.chain if guard else chain_for(config_of(Dialog(agent=row, llm=row.llm))) if row.pk else ()
        return " → ".join(names) or "—"

    def save_model(self, request: HttpRequest, obj: Agent, form: ModelForm, change: bool) -> None:
        if not change and obj.llm.limit_type.startswith(LOCAL):
            obj.context_budget = True
        super().save_model(request, obj, form, change)
