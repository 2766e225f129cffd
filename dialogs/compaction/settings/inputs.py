"""The fields of the settings page: texts that may be empty, and what the engine says of each by itself."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from dialogs.compaction.settings.checking import own_faults, worded, worded_inside
from dialogs.compaction.settings.fields import (
    CHOICES,
    DEFAULTS,
    Presets,
    Words,
    check_at,
    id_of,
    parted,
    value_at,
    written,
)
from health.compaction.terms.config_checks import Check, InvalidConfig
from health.compaction.terms.configuration import load_own

OWN_EXAMPLE = "how: chain\nbreaking_strategy:\n  chain_order: [discard_low_rel]\n"
WHOLE, GROUPED = re.compile(r"-?\d+"), re.compile(r"\d{1,3}(,\d{3})+")
# Python's int() refuses numbers of more than some thousand digits.
MOST_DIGITS = 1000


class TextField(forms.CharField):
    """Empty, `placeholder` holds; else it must be what the engine's `check` lets pass."""

    def __init__(
        self, *, check: Check | None = None, placeholder: str = "", presets: Presets = (), **options: Any
    ) -> None:
        super().__init__(**{"required": False} | options)
        self.check, self.presets = check, presets
        self.widget.attrs |= {"autocapitalize": "none", "spellcheck": "false", "placeholder": placeholder}

    def validate(self, value: Any) -> None:
        super().validate(value)
        if self.check is None or value in self.empty_values:
            return
        try:
            self.check(value, "")
        except InvalidConfig as error:
            raise ValidationError(worded(error)) from error


class NumberField(TextField):
    def to_python(self, value: Any) -> Any:
        return number_in(super().to_python(value) or "")


class NamesField(TextField):
    def to_python(self, value: Any) -> Any:
        return parted(super().to_python(value) or "")


class OwnField(TextField):
    """Settings of an LLM type's or an agent's own, as YAML. Cleaned they are JSON; none are empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(placeholder=OWN_EXAMPLE, max_length=10_000, **options)

    def clean(self, value: Any) -> str:
        try:
            own = load_own(super().clean(value))
        except InvalidConfig as error:
            raise ValidationError(worded_inside(error)) from error
        if faults := list(own_faults(own)):
            raise ValidationError(faults)
        return own


class LimitInput(forms.TextInput):
    """Empty while it is switched off: its placeholder is the limit that holds then."""

    def format_value(self, value: Any) -> str | None:
        return None if "disabled" in self.attrs else super().format_value(value)


class AgentField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} · {obj.llm}"


class Input(forms.BoundField):
    """`key` is what the YAML calls it. Its hint, or what is wrong with it, stands below."""

    @property
    def auto_id(self) -> str:
        return id_of(self.html_name)

    @property
    def aria_describedby(self) -> str:
        return "" if self.is_hidden or self.widget_type == "checkbox" else f"{self.auto_id}-hint"

    @property
    def key(self) -> str:
        return self.html_name.rpartition(".")[2]

    @property
    def is_set(self) -> bool:
        return self.value() not in (None, "", self.field.initial)


def field_of(path: str, words: Words) -> forms.Field:
    """The field of a row of the table. Its default says of which kind it is: one of a few words, names, a number."""
    default = value_at(DEFAULTS, path)
    told: dict[str, Any] = {"label": words.label, "help_text": words.hint}
    if isinstance(default, StrEnum):
        choices = [(choice.value, CHOICES[choice.value]) for choice in type(default)]
        return forms.ChoiceField(required=False, initial=default.value, choices=choices, **told)
    kind = NamesField if isinstance(default, tuple) else NumberField
    widget = forms.TextInput({"list": f"{id_of(path)}-presets"} if words.presets else {})
    behind = grouped(written(default))
    return kind(check=check_at(path), placeholder=behind, presets=words.presets, widget=widget, **told)


def number_in(text: str) -> int | float | str:
    """The number that a person typed, `3,500` too. Other text stays text: the engine refuses it."""
    if WHOLE.fullmatch(text) or GROUPED.fullmatch(text):
        digits = text.replace(",", "")
        return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS
    try:
        return float(text) if "_" not in text and not text.isdigit() else text
    except ValueError:
        return text


def grouped(text: str) -> str:
    """3500 -> "3,500"; what is no whole number stays as it is."""
    found = number_in(text)
    return f"{found:,}" if isinstance(found, int) else text
