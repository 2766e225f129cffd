"""The admin's forms for providers, LLMs and agents: checks, and the values that empty fields inherit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.common.secrets import may_hold_key, not_for_keys
from dialogs.compaction.settings.inputs import OwnField
from dialogs.llms.reads import configured
from dialogs.llms.writes.providers import InvalidProvider, clean_api_key
from dialogs.models import LLM, Agent, Provider
from dialogs.models.llm import WindowSource
from dialogs.models.provider import ProviderKind
from dialogs.providers.addresses import InvalidAddress, clean_base_url, is_elsewhere
from health.compaction.terms.configuration import InvalidConfig, own_as_yaml, with_own
from health.configured import context_config
from health.monitor.levels import Configured, context_window, thresholds
from health.tokens.counters import fault_of_name


class UpToDateForm(forms.ModelForm):
    """Saves only the fields that were changed on the page: others may have changed the row since the page was opened.

    Each field's initial value is sent along, hidden. A form without these values is saved whole.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shows = not self.is_bound or any(self.add_initial_prefix(name) in self.data for name in self.fields)
        for field in self.fields.values():
            field.show_hidden_initial = shows and bool(self.instance.pk)

    def _post_clean(self) -> None:
        self.cleaned_data = {name: value for name, value in self.cleaned_data.items() if self._is_meant(name)}
        super()._post_clean()  # type: ignore[misc]

    def _is_meant(self, name: str) -> bool:
        is_known = self.fields[name].show_hidden_initial and hasattr(self.instance, name)
        return not is_known or name in self.changed_data


class ProviderForm(UpToDateForm):
    """The stored key is never shown: the field is write-only."""

    new_key = forms.CharField(
        label=gettext_lazy("New key"),
        required=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "class": "vTextField"}),
        help_text=gettext_lazy("Stored encrypted, and never shown again. Leave it empty to keep what is stored."),
    )
    clear_key = forms.BooleanField(label=gettext_lazy("Remove the stored key"), required=False)

    class Meta:
        model = Provider
        fields = ("name", "label", "kind", "base_url", "api_key_env", "enabled", "max_concurrent")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = self.fields.get("kind")
        if isinstance(kind, forms.ChoiceField) and not self._may_be_scripted():
            kind.choices = [choice for choice in ProviderKind.choices if choice[0] != ProviderKind.SCRIPTED]

    def _may_be_scripted(self) -> bool:
        return bool(settings.DOMINDS_SCRIPTED) or self.instance.kind == ProviderKind.SCRIPTED

    def clean_new_key(self) -> str:
        try:
            return clean_api_key(self.cleaned_data["new_key"])
        except InvalidProvider as error:
            raise ValidationError(str(error)) from error

    def clean_api_key_env(self) -> str:
        variable: str = self.cleaned_data["api_key_env"].strip()
        if variable and not may_hold_key(variable):
            raise ValidationError(not_for_keys(variable))
        return variable

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        if data.get("new_key") and data.get("clear_key"):
            self.add_error("clear_key", _("Either write a new key or remove the stored one."))
        if "base_url" in data and "kind" in data:
            self._clean_address(data)
        return data

    @property
    def leads_elsewhere(self) -> bool:
        """Is the new address another host, or the same without TLS? The stored key must not be sent there."""
        return is_elsewhere(str(self.initial.get("base_url", "")), self.instance.base_url)

    def _clean_address(self, data: dict[str, Any]) -> None:
        """Not a field's `clean_` method, since the allowed addresses depend on the kind of provider."""
        try:
            data["base_url"] = clean_base_url(data["base_url"], kind=data["kind"])
        except InvalidAddress as error:
            self.add_error("base_url", str(error))


class LimitsForm(UpToDateForm):
    """An empty number is inherited; the placeholder shows the inherited value."""

    class Meta:
        model = LLM
        fields: tuple[str, ...] = (
            "model_id",
            "label",
            "context_length",
            "optimal_max_tokens",
            "critical_max_tokens",
            "enabled",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, number in inherited(self.instance).items():
            if name in self.fields:
                self.fields[name].widget.attrs["placeholder"] = _("inherits %(number)s") % {"number": f"{number:,}"}

    def clean(self) -> dict[str, Any] | None:
        """Mark a typed window as the admin's; an emptied one falls back to the server's or the catalogue's."""
        data = super().clean()
        if "context_length" in self.changed_data and "context_length" in self.cleaned_data:
            typed = self.cleaned_data["context_length"]
            without = window_without_admin(self.instance)
            length, source = without if typed is None else (typed, WindowSource.ADMIN)
            self.cleaned_data["context_length"] = length
            self.instance.context_length_source = source
        return data


class LLMForm(LimitsForm):
    source_url = forms.URLField(
        label=gettext_lazy("Source of the limits"),
        required=False,
        max_length=500,
        assume_scheme="https",
        widget=forms.URLInput(attrs={"class": "vURLField"}),
    )
    limit_type = forms.ChoiceField(
        label=gettext_lazy("Limit type"),
        required=False,
        help_text=gettext_lazy(
            "Dialogs with this LLM are compacted by themselves when they near the type's limit. "
            "A type that follows the default has the default limit. Empty: no limit, except for agents that have one."
        ),
    )

    class Meta(LimitsForm.Meta):
        fields = (
            "provider",
            *LimitsForm.Meta.fields,
            "input_length",
            "output_length",
            "load_with",
            "caution_remediation_cadence_generations",
            "tool_calling",
            "tool_result_limit_bytes",
            "message_shape",
            "compaction",
            "tokenizer",
            "limit_type",
            "source_url",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limit_type = self.fields["limit_type"]
        if isinstance(limit_type, forms.ChoiceField):
            limit_type.choices = limit_types(self.instance.limit_type)

    def clean_tokenizer(self) -> str:
        name: str = self.cleaned_data["tokenizer"].strip()
        if fault := fault_of_name(name, data=Path(settings.DOMINDS_DATA_DIR)):
            raise ValidationError(fault)
        return name


class AgentForm(UpToDateForm):
    """The agent's own settings are YAML with the keys of the exported context settings, checked before they are
    stored."""

    own = OwnField(
        label=gettext_lazy("Settings of its own"),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60}),
        help_text=gettext_lazy(
            "YAML with how, lm_studio, warning_threshold, goal, accept, breaking_strategy and payloads, as in the "
            "exported context settings. They hold for this agent in the stead of its LLM type's and everybody's. What "
            "is left out is as there."
        ),
    )

    class Meta:
        model = Agent
        fields = (
            *("name", "slug", "description", "enabled", "llm", "instructions", "max_output_tokens", "compaction"),
            *("context_budget", "context_limit", "is_p1", "workspace_enabled", "mcp_servers"),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "own" in self.fields:
            self.initial["own"] = own_as_yaml(self.instance.own_settings)
        if "enabled" in self.fields:
            self.fields["enabled"].help_text = _(
                "Where it is off, neither new dialogs nor clients are offered the agent. Dialogs that have begun with "
                "it go on: to end these, switch off its LLM."
            )

    def clean_own(self) -> str:
        own: str = self.cleaned_data["own"]
        try:
            with_own(context_config(), own)
        except InvalidConfig as error:
            raise ValidationError(str(error)) from error
        return own

    def clean(self) -> dict[str, Any] | None:
        data = super().clean()
        if "own" in self.cleaned_data and "own" in self.changed_data:
            self.instance.own_settings = self.cleaned_data["own"]
        return data


def limit_types(stored: str) -> list[tuple[str, str]]:
    """The limit types of the compaction settings, each with its limit; also the stored type, if it is unknown."""
    config = context_config()
    follows = _("%(limit)s, follows the default") % {"limit": f"{config.default_limit:,}"}
    limits = {llm.type: follows if llm.follow_default else f"{llm.limit:,}" for llm in config.per_llm}
    unknown = [(stored, stored)] if stored and stored not in limits else []
    return [("", "---------"), *((name, f"{name}: {limit}") for name, limit in limits.items()), *unknown]


def window_without_admin(llm: LLM) -> tuple[int | None, str]:
    """The window and its source when no admin sets one: the server's word, else the catalogue's."""
    if llm.detected_context_length:
        return llm.detected_context_length, WindowSource.SERVER
    listed = llm.catalogue_values.get("context_length")
    return (listed, WindowSource.FILE) if listed else (None, "")


def inherited(llm: LLM) -> dict[str, int]:
    """The value that each empty number inherits. Without a window, critical has none."""
    detected, _source = window_without_admin(llm)
    window = context_window(configured(llm))
    defaults = thresholds(Configured(), window=window or 1)
    numbers = {
        "context_length": detected,
        "optimal_max_tokens": defaults.optimal_max_tokens,
        "critical_max_tokens": defaults.critical_max_tokens if window else None,
        "caution_remediation_cadence_generations": defaults.caution_cadence,
    }
    return {name: number for name, number in numbers.items() if number}
