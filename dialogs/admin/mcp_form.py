"""The admin's form for an MCP server: how it is reached, and its secrets, which go in and never come out."""

from __future__ import annotations

import re
import shlex
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.models import McpServer
from dialogs.providers.addresses import is_elsewhere

# What an environment takes, and what a request's headers take.
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*=\s*([\x20-\x7e]*)")


class McpServerForm(forms.ModelForm):
    """The stored secrets never come back out: the field is for writing only."""

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
        """To what the stored secrets were not meant for. Whoever may name a program reads its environment anyway."""
        if "transport" in self.changed_data:
            return True
        is_address = self.cleaned_data.get("transport") == McpServer.Transport.HTTP
        return is_address and is_elsewhere(str(self.initial.get("url", "")), self.cleaned_data.get("url", ""))

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
        """The secrets by name. A complaint says which line is wrong, and not what stands in it."""
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
