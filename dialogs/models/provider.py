"""A Provider is one service that serves LLMs: its kind, address and key."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# An OpenAI-compatible server at this port counts as an Ollama until it has been asked.
OLLAMA_PORT = ":11434"


class ProviderKind(models.TextChoices):
    OPENAI = "openai", _("OpenAI-compatible")
    LMSTUDIO = "lmstudio", "LM Studio"
    OLLAMA = "ollama", "Ollama"
    LLAMACPP = "llamacpp", _("llama.cpp server")
    ANTHROPIC = "anthropic", "Anthropic"
    SCRIPTED = "scripted", _("Scripted (tests)")


def provider_kinds() -> Sequence[tuple[str, Promise | str]]:
    """The choices of a provider's kind. Migrations hold this function's name, so that a new kind needs none."""
    return ProviderKind.choices


class Origin(models.TextChoices):
    """Who created a provider or LLM. The catalogue updates only fields that no admin has changed."""

    CATALOGUE = "catalogue", _("built-in catalogue")
    FILE = "file", _("override file")
    ADMIN = "admin", _("an admin")
    DEMO = "demo", _("the demo")


class Provider(models.Model):
    name = models.SlugField(_("name"), max_length=60, unique=True)
    label = models.CharField(_("label"), max_length=120, blank=True)
    kind = models.CharField(_("kind"), max_length=20, choices=provider_kinds)
    base_url = models.CharField(_("base URL"), max_length=500)
    # Fernet ciphertext, written through `dialogs.common.secrets` only; never shown, never logged.
    api_key_encrypted = models.TextField(blank=True, editable=False)
    api_key_env = models.CharField(
        _("key variable"),
        max_length=120,
        blank=True,
        help_text=_("Name of an environment variable that holds the key. Used when no key is stored here."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    max_concurrent = models.PositiveSmallIntegerField(
        _("requests at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("So many answers are asked of it at the same time; further ones wait in line. Empty: no limit."),
    )
    origin = models.CharField(_("origin"), max_length=20, choices=Origin, default=Origin.ADMIN, editable=False)
    # Whether the server said that it is an Ollama, and at which address it was asked; null: never asked.
    is_ollama = models.BooleanField(null=True, editable=False)
    asked_at_url = models.CharField(max_length=500, blank=True, editable=False)
    # The values that the catalogue wrote last, by field; a field with another value was edited by an admin.
    catalogue_values = models.JSONField(default=dict, blank=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("provider")
        verbose_name_plural = _("providers")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.label or self.name

    @property
    def is_hidden_ollama(self) -> bool:
        """Is it an Ollama that was added as an OpenAI-compatible server? By its own word, else by its port."""
        if self.kind != ProviderKind.OPENAI:
            return False
        if self.is_ollama is not None and self.asked_at_url == self.base_url:
            return self.is_ollama
        return OLLAMA_PORT in self.base_url
