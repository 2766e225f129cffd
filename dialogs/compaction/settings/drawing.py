"""The fields of the settings page as they are drawn: what stands in them, what stands behind, what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dialogs.compaction.reads.compaction_phases import phase
from dialogs.compaction.settings.fields import RETRIES, RETRY_DEFAULT, Field, Group, value_at
from dialogs.compaction.settings.sheet import CHAIN, LLMS, RETRY_KEYS, TOOLS, Sheet, number_in, written
from health.compaction.config import ContextConfig
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import OWN

# Always first, whatever the chain: the guard puts it there.
FIRST = "trim_payloads"
STRATEGIES: Mapping[str, Promise | str] = {name: phase(name).choice or name for name in REGISTRY}
CHOICES: Mapping[str, Promise] = {
    "passages": _("Passages first"),
    "chain": _("The chain first"),
    "pruning_agent": _("The pruning agent decides"),
    "no_model": _("No model is asked"),
    "extractive": _("Of sentences that were said"),
    "model": _("By the pruning agent’s model"),
    "free": _("Where nobody waits and nothing is charged"),
    "always": _("Always"),
    "fresh_start": _("Fresh start with a handover"),
    "truncate": _("Cut off what is oldest"),
    "error": _("Stop with an error"),
    "never": _("Never"),
    "offer": _("Offer it"),
    "automatic": _("Do it at once"),
    "brief": _("Brief"),
    "linked": _("With a link to what was left out"),
    "off": _("Off"),
    "on": _("On"),
}
DEFAULTS = ContextConfig()
OWN_LABEL = _("Settings of its own (YAML)")
OWN_HINT = _(
    "how, lm_studio, warning_threshold, goal, accept, breaking_strategy and payloads, as in the exported file. What is "
    "left out is as for everybody."
)
OWN_EXAMPLE = "how: chain\nbreaking_strategy:\n  chain_order: [discard_low_rel]\n"
TYPE, LIMIT, TOOL = _("LLM type"), _("Limit (tokens)"), _("Tool")


def id_of(name: str) -> str:
    """The id of the input of this name: brackets and dots have a meaning in selectors."""
    return "setting-" + "".join(letter if letter.isalnum() else "-" for letter in name)


@dataclass(frozen=True, kw_only=True)
class Input:
    """One field. `key` is what YAML calls it, `placeholder` what holds while it is empty."""

    name: str
    label: Promise | str
    text: str = ""
    key: str = ""
    hint: Promise | str = ""
    placeholder: str = ""
    error: str = ""
    choices: tuple[tuple[str, Promise], ...] = ()
    presets: tuple[tuple[int, Promise], ...] = ()

    @property
    def is_set(self) -> bool:
        return self.text not in ("", self.placeholder)

    @property
    def id(self) -> str:
        return id_of(self.name)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A strategy with its parameters: open where one of them is not the default."""

    name: str
    words: Promise | str
    fields: tuple[Input, ...]

    @property
    def is_open(self) -> bool:
        return any(field.error or field.is_set for field in self.fields)


@dataclass(frozen=True, kw_only=True)
class LlmRow:
    """`kept` is the limit while the row follows the default: browsers do not send a field that is switched off."""

    at: int
    type: Input
    limit: Input
    kept: str
    follows: bool
    own: Input

    @property
    def name(self) -> str:
        return f"{LLMS}[{self.at}]"


@dataclass(frozen=True, kw_only=True)
class ToolRow:
    at: int
    inputs: tuple[Input, ...]


@dataclass(frozen=True, kw_only=True)
class Link:
    """One strategy of the chain, by its place from 0."""

    at: int
    name: str
    words: Promise | str
    error: str


@dataclass(frozen=True)
class Drawing:
    sheet: Sheet
    errors: Mapping[str, str]

    def group(self, group: Group) -> list[Input]:
        return [self._field(field) for field in group.fields]

    def section(self, group: Group) -> Section:
        return Section(name=group.name, words=STRATEGIES[group.name], fields=tuple(self.group(group)))

    def _field(self, field: Field) -> Input:
        default = written(value_at(DEFAULTS, field.path))
        return self._input(
            field.path,
            field.label,
            placeholder=grouped(default),
            hint=field.hint,
            text=self.sheet.texts.get(field.path) or (default if field.choices else ""),
            choices=tuple((choice.value, CHOICES[choice.value]) for choice in field.choices or ()),
            presets=field.presets,
        )

    def llms(self) -> Iterator[LlmRow]:
        default = grouped(self.sheet.texts.get("default_limit") or str(DEFAULTS.default_limit))
        for at in self.sheet.rows(LLMS):
            name = f"{LLMS}[{at}]"
            kept = self.sheet.texts.get(f"{name}.limit", "")
            follows = f"{name}.follow_default" in self.sheet.texts
            limit = self._input(f"{name}.limit", LIMIT, text="" if follows else kept, placeholder=default)
            own = self._input(f"{name}.{OWN}", OWN_LABEL, hint=OWN_HINT, placeholder=OWN_EXAMPLE)
            named = self._input(f"{name}.type", TYPE)
            yield LlmRow(at=at, type=named, limit=limit, kept=kept, follows=follows, own=own)

    def tools(self) -> Iterator[ToolRow]:
        """The rows of tools. An empty field has the value of all tools as its placeholder."""
        labels = [field.label for field in RETRIES.fields]
        for at in self.sheet.rows(TOOLS):
            inherited = (self.sheet.texts.get(f"{RETRY_DEFAULT}.{key}", "") for key in RETRY_KEYS)
            policy = (
                self._input(f"{TOOLS}[{at}].{key}", label, placeholder=text)
                for key, label, text in zip(RETRY_KEYS, labels, inherited, strict=True)
            )
            yield ToolRow(at=at, inputs=(self._input(f"{TOOLS}[{at}].tool", TOOL), *policy))

    def chain(self) -> Iterator[Link]:
        for at, name in enumerate(self.sheet.chain):
            yield Link(at=at, name=name, words=STRATEGIES.get(name, ""), error=self.errors.get(f"{CHAIN}[{at}]", ""))

    def _input(self, name: str, label: Promise, *, text: str | None = None, **more: Any) -> Input:
        text = self.sheet.texts.get(name, "") if text is None else text
        return Input(
            name=name, label=label, text=text, key=name.rpartition(".")[2], error=self.errors.get(name, ""), **more
        )


def grouped(text: str) -> str:
    """3500 -> "3,500"; what is no whole number stays as it is."""
    found = number_in(text)
    return f"{found:,}" if isinstance(found, int) else text
