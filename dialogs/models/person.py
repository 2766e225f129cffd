"""What belongs to a person and not to a dialog: API keys, and display settings for compactions."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApiKey(models.Model):
    """A key for `/v1` and for the MCP server. The secret is shown once; its hash is kept."""

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

    class State(models.TextChoices):
        """Whether the key is accepted."""

        USABLE = "usable", _("usable")
        REVOKED = "revoked", _("revoked")
        EXPIRED = "expired", _("expired")
        DISABLED = "disabled", _("account disabled")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(_("name"), max_length=120)
    # The first characters of the secret, by which a person recognises it.
    prefix = models.CharField(max_length=20)
    # The secret is 256 random bits, so a fast hash is enough.
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

    @property
    def state(self) -> State:
        if not self.is_usable:
            return self.State.REVOKED if self.revoked_at else self.State.EXPIRED
        return self.State.USABLE if self.owner.is_active else self.State.DISABLED


class CompactionDisplay(models.Model):
    class Detail(models.TextChoices):
        MINIMAL = "minimal", _("Minimal")
        NORMAL = "normal", _("Normal")
        DETAILED = "detailed", _("Detailed")

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="compaction_display"
    )
    show = models.BooleanField(_("show compactions in the sidebar"), default=True)
    detail = models.CharField(_("detail"), max_length=20, choices=Detail, default=Detail.NORMAL)
    auto_hide_seconds = models.PositiveSmallIntegerField(
        _("hide after (seconds)"), default=3, validators=[MinValueValidator(1), MaxValueValidator(10)]
    )
    highlight_p1 = models.BooleanField(_("highlight P1"), default=True)
    # Show a summary before it is applied, with a countdown.
    review_drafts = models.BooleanField(_("review summaries before they are applied"), default=False)

    def __str__(self) -> str:
        return f"display of {self.user_id}"
