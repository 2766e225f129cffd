"""An LLM is one model that a provider serves; LlmBounds is what use has taught of its window."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from dialogs.models.provider import Origin, Provider
from health.tokens.windows import Bounds


class WindowSource(models.TextChoices):
    SERVER = "server", _("read from the server")
    FILE = "file", _("from the catalogue file")
    ADMIN = "admin", _("set by an admin")
    REFUSAL = "refusal", _("learned from a refusal")


class Compaction(models.TextChoices):
    """Whether a context is compacted by itself before it overflows."""

    AUTOMATIC = "automatic", _("by itself, before it overflows")
    OFF = "off", _("off: nothing is compacted by itself")


class ToolCalling(models.TextChoices):
    AUTO = "auto", _("offer tools")
    REFUSED = "refused", _("the server refused tools")
    OFF = "off", _("never offer tools")


class MessageShape(models.TextChoices):
    """What `providers/laws.py` does to messages before they are sent."""

    AS_THEY_ARE = "", _("as they are")
    STRICT = "strict", _("for a strict chat template: roles alternate, short ids")
    NO_SYSTEM = "no_system", _("for a strict chat template without a system role")


class Prefill(models.TextChoices):
    CONTINUES = "continues", _("goes on with the last message")
    REFUSED = "refused", _("begins a message of its own")


class LLM(models.Model):
    """One model of a provider. An unknown number is null, which is never read as zero."""

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="llms", verbose_name=_("provider"))
    model_id = models.CharField(_("model id"), max_length=200)
    label = models.CharField(_("label"), max_length=200, blank=True)
    context_length = models.PositiveIntegerField(
        _("context length"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("The model's context window in tokens."),
    )
    context_length_source = models.CharField(
        _("context length source"), max_length=20, choices=WindowSource, blank=True, editable=False
    )
    detected_context_length = models.PositiveIntegerField(
        _("context length read from the server"), null=True, blank=True, editable=False
    )
    limits_read_at = models.DateTimeField(_("limits read"), null=True, blank=True, editable=False)
    input_length = models.PositiveIntegerField(
        _("input length"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Used as the window when there is no context length."),
    )
    output_length = models.PositiveIntegerField(
        _("output length"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    optimal_max_tokens = models.PositiveIntegerField(
        _("optimal max tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Above this many prompt tokens the level is caution. Empty: 100,000."),
    )
    critical_max_tokens = models.PositiveIntegerField(
        _("critical max tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        # xgettext:no-python-format
        help_text=_("Above this many prompt tokens the level is critical. Empty: 90 % of the window."),
    )
    caution_remediation_cadence_generations = models.PositiveIntegerField(
        _("caution cadence (generations)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("While caution lasts, the agent is asked again every so many generations. Empty: 10."),
    )
    tool_calling = models.CharField(_("tool calling"), max_length=20, choices=ToolCalling, default=ToolCalling.AUTO)
    message_shape = models.CharField(
        _("messages are sent"),
        max_length=20,
        choices=MessageShape,
        default=MessageShape.AS_THEY_ARE,
        blank=True,
        help_text=_("Learned where a server refuses messages in the order in which they were said."),
    )
    tool_result_limit_bytes = models.PositiveIntegerField(
        _("largest tool result (bytes)"),
        null=True,
        blank=True,
        help_text=_("While caution or critical lasts, larger results are withheld. Empty: 2,000. 0: never withheld."),
    )
    compaction = models.CharField(
        _("compaction"),
        max_length=20,
        choices=Compaction,
        default=Compaction.AUTOMATIC,
        help_text=_("For every agent that speaks with this LLM, and every client."),
    )
    load_with = models.PositiveIntegerField(
        _("load with (tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("LM Studio only: where the model is not loaded, load it with this window. Empty: never load it."),
    )
    # While a process loads it: until when the others wait at most.
    loading_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Does the model continue an assistant message at the end of a request? Tried when an answer is cut first.
    prefill = models.CharField(max_length=20, choices=Prefill, blank=True, editable=False)
    tokenizer = models.CharField(
        _("tokenizer"),
        max_length=200,
        blank=True,
        help_text=_(
            "By which texts are counted where the model's name does not say it: the name of a model whose vocabulary "
            "is known, such as llama-3 or gpt-4o, or of a tokenizer.json in the folder tokenizers of the data folder. "
            "Empty: by the model's name."
        ),
    )
    limit_type = models.CharField(
        _("limit type"),
        max_length=60,
        blank=True,
        help_text=_("One of the LLM types of the compaction settings: its limit holds for agents without one."),
    )
    source_url = models.URLField(_("source of the limits"), max_length=500, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    origin = models.CharField(_("origin"), max_length=20, choices=Origin, default=Origin.ADMIN, editable=False)
    catalogue_values = models.JSONField(default=dict, blank=True, editable=False)

    class Meta:
        verbose_name = _("LLM")
        verbose_name_plural = _("LLMs")
        ordering = ("provider__name", "model_id")
        constraints = [models.UniqueConstraint(fields=["provider", "model_id"], name="llm_once_per_provider")]

    def __str__(self) -> str:
        return self.label or self.model_id

    @property
    def is_usable(self) -> bool:
        """Neither it nor its provider is switched off."""
        return self.enabled and self.provider.enabled

    @property
    def slug(self) -> str:
        """The name by which clients and files refer to it, `provider/model`."""
        return f"{self.provider.name}/{self.model_id}"


BOUNDS = (
    *("accepted", "accepted_at", "refused", "refused_at", "words", "window", "named"),
    *("cut_sent", "cut_read", "cut_at", "suspicions", "reports_part"),
)


class LlmBounds(models.Model):
    """What use has taught of one LLM's window: the largest prompt read, the smallest refused, silent cuts.

    The columns are the fields of `health.tokens.windows.Bounds`. Without a row nothing is known.
    """

    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="bounds"
    )
    # Reported by the provider: prompt tokens.
    accepted = models.PositiveIntegerField(_("largest prompt read"), null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    # Prompt and requested answer together; estimated, unless the refusal named the number.
    refused = models.PositiveIntegerField(_("smallest request refused"), null=True, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)
    words = models.TextField(_("the server's words"), blank=True)
    # The window that a refusal named: confirmed, and not confirmed yet.
    window = models.PositiveIntegerField(_("window that a refusal named"), null=True, blank=True)
    named = models.PositiveIntegerField(null=True, blank=True)
    # When the server was found to cut silently: tokens sent (estimated), and the most that it had read (reported).
    cut_sent = models.PositiveIntegerField(null=True, blank=True)
    cut_read = models.PositiveIntegerField(null=True, blank=True)
    cut_at = models.DateTimeField(null=True, blank=True)
    suspicions = models.PositiveSmallIntegerField(default=0)
    reports_part = models.BooleanField(_("reports only part of the prompt"), default=False)

    class Meta:
        verbose_name = _("learned bounds of an LLM")
        verbose_name_plural = _("learned bounds of LLMs")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.llm_id})"

    @property
    def known(self) -> Bounds:
        return Bounds(**{name: getattr(self, name) for name in BOUNDS})

    @known.setter
    def known(self, known: Bounds) -> None:
        for name in BOUNDS:
            setattr(self, name, getattr(known, name))
