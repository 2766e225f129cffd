"""Agents (an LLM with instructions and tools), and the MCP servers that offer them tools."""

from __future__ import annotations

from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from dialogs.models.llm import Compaction


def unless_direct(collector: Any, field: Any, agents: Any, using: str) -> None:
    """on_delete of an agent's LLM: agents protect it, except the hidden one that stands for the LLM, which is deleted
    too. That one is protected by its dialogs, and so is the LLM."""
    if others := agents.filter(is_direct=False):
        models.PROTECT(collector, field, others, using)
    models.CASCADE(collector, field, agents, using)


class WhenFull(models.TextChoices):
    """What happens first when the agent's context fills."""

    COMPACT = "compact", _("compact the history")
    REMIND = "remind", _("remind the agent to begin a new course")
    NO_PROMPTS = "no_prompts", _("compact the history, and ask the agent for nothing")


class Agent(models.Model):
    name = models.CharField(_("name"), max_length=120)
    slug = models.SlugField(_("slug"), max_length=60, unique=True)
    description = models.CharField(_("description"), max_length=300, blank=True)
    instructions = models.TextField(_("instructions"), blank=True)
    llm = models.ForeignKey("dialogs.LLM", on_delete=unless_direct, related_name="agents", verbose_name=_("LLM"))
    max_output_tokens = models.PositiveIntegerField(
        _("max output tokens"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    compaction = models.CharField(
        _("compaction"),
        max_length=20,
        choices=Compaction,
        default=Compaction.AUTOMATIC,
        help_text=_("By itself: the history is compacted before a request that would not fit the model's window."),
    )
    when_full = models.CharField(
        _("when the context fills"),
        max_length=20,
        choices=WhenFull,
        default=WhenFull.COMPACT,
        help_text=_(
            "Compact: the history is shortened in place, and the agent is asked to write reminders only as long as "
            "that brings some. Remind: the agent is asked to write down what matters and to begin a new course; the "
            "history is compacted only where the next request would not fit. Ask for nothing: no prompt is inserted "
            "and no course is begun by itself; where compaction is off too, what does not fit is refused."
        ),
    )
    context_budget = models.BooleanField(
        _("context limit"),
        default=False,
        help_text=_("Keep the context under a limit of its own, below what the window has room for."),
    )
    context_limit = models.PositiveIntegerField(
        _("limit (tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty: the LLM's limit, else the default limit."),
    )
    is_p1 = models.BooleanField(_("P1 agent"), default=False, help_text=_("A P1 agent may use a fifth more."))
    # JSON of `configuration.load_own`, which has checked it; empty: everybody's settings.
    own_settings = models.TextField(_("settings of its own"), blank=True, editable=False)
    workspace_enabled = models.BooleanField(
        _("workspace tools"),
        default=False,
        help_text=_("The agent may list, read and search the files in its own folder, and nothing outside it."),
    )
    mcp_servers = models.ManyToManyField(
        "dialogs.McpServer", blank=True, related_name="agents", verbose_name=_("MCP servers")
    )
    # Stands for an LLM that clients of `/v1` use without an agent: no instructions, listed nowhere.
    is_direct = models.BooleanField(default=False, editable=False)
    is_demo = models.BooleanField(_("demo"), default=False, editable=False)
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ("is_demo", "name")

    def __str__(self) -> str:
        return self.name


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
    # Why its tools could not be read; empty if they could.
    problem = models.TextField(_("problem"), blank=True, editable=False)

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
