"""An MCP server that an admin has added: a program to start, or an address to call. Its tools go to agents."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class McpServer(models.Model):
    class Transport(models.TextChoices):
        STDIO = "stdio", _("a program on this machine (stdio)")
        HTTP = "http", _("an address (streamable HTTP)")

    # The first half of its tools' names, `<name>__<tool>`.
    name = models.SlugField(_("name"), max_length=30, unique=True)
    transport = models.CharField(_("transport"), max_length=20, choices=Transport)
    command = models.CharField(
        _("command"), max_length=1000, blank=True, help_text=_("Program and arguments, quoted as in a shell.")
    )
    url = models.CharField(_("URL"), max_length=500, blank=True)
    # Fernet ciphertext of a JSON object: environment variables of a program, headers of an address.
    secrets_encrypted = models.TextField(blank=True, editable=False)
    timeout_seconds = models.PositiveIntegerField(_("timeout (seconds)"), default=60, validators=[MinValueValidator(1)])
    enabled = models.BooleanField(_("enabled"), default=True)
    # What it offered when it was last asked: [{"name", "description", "inputSchema", "annotations"}, ...].
    tools = models.JSONField(default=list, blank=True, editable=False)
    tools_read_at = models.DateTimeField(_("tools read"), null=True, blank=True, editable=False)
    # Why it could not be asked, when it could not.
    problem = models.TextField(_("problem"), blank=True, editable=False)

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
