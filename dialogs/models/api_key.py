"""A key for `/v1` and for the MCP server. The secret is shown once; what is kept is its hash."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApiKey(models.Model):
    class Scope(models.TextChoices):
        CHAT = "chat", _("chat, and read")
        READ = "read", _("read only")
        CHAT_ONLY = "chat_only", _("chat only")

    class Notices(models.TextChoices):
        """How a client is told that its conversation is being compacted."""

        EVENT = "event", _("status events (Open WebUI shows them)")
        REASONING = "reasoning", _("as reasoning")
        CONTENT = "content", _("as text of the answer")
        OFF = "off", _("not at all")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(_("name"), max_length=120)
    # The first characters of the secret, by which a person recognises it.
    prefix = models.CharField(max_length=20)
    # Of a random secret of 256 bits: no slow hash is needed.
    sha256 = models.CharField(max_length=64, unique=True)
    scope = models.CharField(_("scope"), max_length=20, choices=Scope, default=Scope.CHAT)
    # Ids as `GET /v1/models` lists them; empty: all.
    allowed_models = models.JSONField(_("models"), default=list, blank=True)
    notices = models.CharField(_("notices"), max_length=20, choices=Notices, default=Notices.EVENT)
    offers_recall = models.BooleanField(
        _("offer recall and reminders"),
        default=False,
        help_text=_(
            "Let the model look up what was compacted away, and keep reminders. Dominds answers; the client sees "
            "nothing of it."
        ),
    )
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty: the server's default."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    # Written at most once a minute.
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
