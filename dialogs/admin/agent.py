"""Agents in the admin: a name, instructions, and the LLM that follows them."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from dialogs.admin.privacy import KeepsDialogs
from dialogs.driver.tools.workspace_paths import folder_of
from dialogs.models import Agent


@admin.register(Agent)
class AgentAdmin(KeepsDialogs):
    dialogs_by = "agent"
    list_display = ("name", "slug", "llm", "enabled", "is_demo")
    list_filter = ("enabled", "llm__provider")
    list_select_related = ("llm",)
    search_fields = ("name", "slug", "description")
    prepopulated_fields = {"slug": ("name",)}
    filter_horizontal = ("mcp_servers",)
    readonly_fields = ("folder", "is_demo", "created_at")
    fieldsets = (
        (None, {"fields": (("name", "slug"), "description", "enabled")}),
        (_("What it does"), {"fields": ("llm", "instructions", "max_output_tokens")}),
        (_("Tools"), {"fields": (("workspace_enabled", "folder"), "mcp_servers")}),
        (_("Record"), {"fields": (("is_demo", "created_at"),)}),
    )

    @admin.display(description=_("its folder"))
    def folder(self, row: Agent) -> str:
        """Where an admin puts files for this agent."""
        return str(folder_of(row)) if row.slug else "—"
