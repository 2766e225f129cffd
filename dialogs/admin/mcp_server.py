"""MCP servers in the admin: how each is reached, its write-only secrets, and the tools that it offered last."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dialogs.admin.base import AdminMessage, CallsAfterSaving, show
from dialogs.admin.forms import UpToDateForm
from dialogs.agents.reads import secrets_of
from dialogs.agents.tools.mcp import LEFT_OUT
from dialogs.agents.writes import forget_tools, set_secrets
from dialogs.common.secrets import KeyUnreadable
from dialogs.models import McpServer
from dialogs.providers.addresses import is_elsewhere

# A valid line for an environment variable, and for a request header.
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*=\s*([\x20-\x7e]*)")
# A change of one of these may lead to another server, or to the same one with other tools.
ADDRESS = {"transport", "command", "url", "new_secrets"}


class McpServerForm(UpToDateForm):
    """The stored secrets are never shown: the field is write-only."""

    new_secrets = forms.CharField(
        label=_("New secrets"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_(
            "One NAME=value a line: environment variables of a program, headers of an address. Stored encrypted, and"
            " never shown again. Those not named here are kept; NAME= removes one."
        ),
    )

    class Meta:
        model = McpServer
        fields = ("name", "transport", "command", "url", "timeout_seconds", "enabled")

    @property
    def leads_elsewhere(self) -> bool:
        """Does it now lead to another server, for which the stored secrets were not meant? Another program counts as
        the same: whoever may set the command could read the environment anyway."""
        if "transport" in self.changed_data:
            return True
        is_address = self.instance.transport == McpServer.Transport.HTTP
        return is_address and is_elsewhere(str(self.initial.get("url", "")), self.instance.url)

    def clean_command(self) -> str:
        command: str = self.cleaned_data["command"].strip()
        try:
            shlex.split(command)
        except ValueError as error:
            raise ValidationError(gettext("A quotation mark is not closed.")) from error
        return command

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if url and not _is_web_address(url):
            raise ValidationError(gettext("Write an address like https://host/mcp, without a password in it."))
        return url

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        transport = data.get("transport")
        if transport == McpServer.Transport.STDIO and data.get("command") == "":
            self.add_error("command", gettext("A program needs its command."))
        if transport == McpServer.Transport.HTTP and data.get("url") == "":
            self.add_error("url", gettext("An address needs its URL."))
        shape = HEADER if transport == McpServer.Transport.HTTP else VARIABLE
        data["new_secrets"] = self._secrets(data.get("new_secrets", ""), shape)
        return data

    def _secrets(self, text: str, shape: re.Pattern[str]) -> dict[str, str]:
        """The secrets by name. An error names the line's number, never its text."""
        secrets: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if found := shape.fullmatch(line.strip()):
                secrets[found[1]] = found[2]
            elif line.strip():
                self.add_error("new_secrets", gettext("Line %(number)s is not NAME=value.") % {"number": number})
        return secrets


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(host) and "@" not in parts.netloc and not re.search(r"\s", url)


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
        # Variables of a program are no headers, and one server must not get another's headers.
        stored = _readable_secrets(obj)
        if stored and form.leads_elsewhere:
            stored = {}
            if not form.cleaned_data["new_secrets"]:
                messages.warning(
                    request, gettext("The stored secrets were removed: they belonged to what stood here before.")
                )
        together = stored | form.cleaned_data["new_secrets"]
        set_secrets(server=obj, secrets={name: value for name, value in together.items() if value})


def ask(servers: Iterable[McpServer]) -> list[AdminMessage]:
    """Ask these servers for their tools, all at once, and say what came."""
    # Imported here, because the import takes a second.
    from dialogs.agents.tools.mcp_servers import ask_all, record_all

    rows = list(servers)
    record_all(rows, async_to_sync(ask_all)(rows))
    return [
        AdminMessage(messages.ERROR, row.problem)
        if row.problem
        else AdminMessage(messages.SUCCESS, f"{row}: {_how_many(row)}")
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
