"""MCP servers in the admin: how each is reached, its secrets (for writing only), and what it offered last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dialogs.admin.mcp_form import McpServerForm
from dialogs.admin.probing import CallsAfterSaving, Finding, show
from dialogs.agents.reads.mcp import secrets_of
from dialogs.agents.tools.mcp import LEFT_OUT
from dialogs.agents.writes.mcp import forget_tools, set_secrets
from dialogs.common.secrets import KeyUnreadable
from dialogs.models import McpServer

# What another server, or the same one in another mood, may stand behind.
ADDRESS = {"transport", "command", "url", "new_secrets"}


@admin.register(McpServer)
class McpServerAdmin(CallsAfterSaving):
    form = McpServerForm
    change_form_template = "admin/dialogs/mcpserver/change_form.html"
    list_display = ("name", "transport", "offers", "asked", "enabled")
    list_filter = ("transport", "enabled")
    search_fields = ("name", "command", "url")
    actions = ("ask_for_tools",)
    calls = {"_ask": lambda pk: ask(McpServer.objects.filter(pk=pk))}
    readonly_fields = ("stored_secrets", "tools_found", "asked", "problem")
    fieldsets = (
        (None, {"fields": ("name", "transport", "command", "url", ("timeout_seconds", "enabled"))}),
        (_("Secrets"), {"fields": ("stored_secrets", "new_secrets")}),
        (_("What it offers"), {"fields": ("asked", "problem", "tools_found")}),
    )

    @admin.display(description=_("stored"))
    def stored_secrets(self, row: McpServer) -> str:
        try:
            return ", ".join(sorted(secrets_of(row))) or "—"
        except KeyUnreadable as error:
            return str(error)

    @admin.display(description=_("asked"))
    def asked(self, row: McpServer) -> str:
        if row.tools_read_at is None:
            return gettext("not asked yet")
        return date_format(localtime(row.tools_read_at), "SHORT_DATETIME_FORMAT")

    @admin.display(description=_("offers"))
    def offers(self, row: McpServer) -> str:
        return row.problem or _how_many(row)

    @admin.display(description=_("tools"))
    def tools_found(self, row: McpServer) -> str | SafeString:
        tools = ((tool["name"], _described(tool)) for tool in row.tools)
        return format_html_join("", "<p><strong>{}</strong> {}</p>", tools) or "—"

    @admin.action(description=_("Ask for its tools"), permissions=["change"])
    def ask_for_tools(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        show(request, ask(queryset))

    def save_model(self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if ADDRESS.isdisjoint(form.changed_data):
            return
        forget_tools(server=obj)
        # A program's variables are not an address's headers, and one server's headers not another's: they stay behind.
        stored = _readable_secrets(obj)
        if stored and form.leads_elsewhere:
            stored = {}
            if not form.cleaned_data["new_secrets"]:
                messages.warning(
                    request, gettext("The stored secrets were removed: they belonged to what stood here before.")
                )
        together = stored | form.cleaned_data["new_secrets"]
        set_secrets(server=obj, secrets={name: value for name, value in together.items() if value})


def ask(servers: Iterable[McpServer]) -> list[Finding]:
    """Ask these servers for their tools, all at once, and say what came."""
    # Loaded when it is needed: it takes a second, and hardly anybody asks.
    from dialogs.agents.tools.mcp_servers import ask_all, record_all

    rows = list(servers)
    record_all(rows, async_to_sync(ask_all)(rows))
    return [
        Finding(messages.ERROR, row.problem) if row.problem else Finding(messages.SUCCESS, f"{row}: {_how_many(row)}")
        for row in rows
    ]


def _readable_secrets(server: McpServer) -> dict[str, str]:
    try:
        return secrets_of(server)
    except KeyUnreadable:
        return {}


def _how_many(server: McpServer) -> str:
    left_out = sum(LEFT_OUT in tool for tool in server.tools)
    count = len(server.tools) - left_out
    said = ngettext("%(count)s tool", "%(count)s tools", count) % {"count": count}
    without = gettext("%(count)s left out") % {"count": left_out}
    return f"{said}; {without}" if left_out else said


def _described(tool: Mapping[str, Any]) -> str:
    if LEFT_OUT in tool:
        return gettext("is not offered: %(why)s") % {"why": tool[LEFT_OUT]}
    return str(tool.get("description", ""))
