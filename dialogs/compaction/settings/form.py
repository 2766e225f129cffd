"""The settings page as a Django form: a field for each row of the table in `fields`, and a form for each row of a list.

Inputs have the names of their keys' paths in the YAML. Each field is checked as the engine checks its key; then the
engine loads all of them together, like a file, and its error becomes the error of a field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import yaml
from django import forms
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.compaction.reads.context_settings import pruning_agents
from dialogs.compaction.settings.checking import MOST_ROWS, faults_of, faults_of_agents, read_agents, too_many, worded
from dialogs.compaction.settings.fields import CHAIN, FIELDS, LLMS, PARTS, RETRY_DEFAULT, TOOLS, Texts, rows_of
from dialogs.compaction.settings.inputs import (
    AgentField,
    Input,
    LimitInput,
    NumberField,
    OwnField,
    TextField,
    field_of,
    grouped,
)
from dialogs.models import Agent
from dialogs.models.agent import WhenFull
from health.compaction.config import ContextConfig, LlmLimit
from health.compaction.terms import config_checks, configuration
from health.compaction.terms.configuration import AGENTS, OWN, RETRY, ROOT, WHEN_FULL, InvalidConfig, checks_of
from health.configured import context_settings

NAME: Mapping[str, Any] = {
    "check": config_checks.name,
    "required": True,
    "max_length": 200,
    "error_messages": {"required": gettext_lazy("Must be a name.")},
}
Row = TypeVar("Row", bound="RowForm")


class PathForm(forms.Form):
    """Its texts, `data` or, where nothing was sent, `initial`, are those of the whole page."""

    bound_field_class = Input
    use_required_attribute = False

    def add_prefix(self, field_name: str) -> str:
        return f"{self.prefix}.{field_name}" if self.prefix else field_name

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        return self.initial.get(self.add_prefix(field_name), field.initial)


class RowForm(PathForm):
    """A row of a list. One in which nothing stands is no row."""

    path: str

    def __init__(self, at: int, **given: Any) -> None:
        super().__init__(prefix=f"{self.path}[{at}]", empty_permitted=True, **given)
        self.at, self.texts = at, given.get("data") or given.get("initial", {})


class LlmForm(RowForm):
    """The limit of an LLM type. `kept` is what it was before it followed the default."""

    path = LLMS
    type = TextField(label=gettext_lazy("LLM type"), **NAME)
    limit = NumberField(label=gettext_lazy("Limit (tokens)"), check=checks_of(LlmLimit)["limit"], widget=LimitInput)
    follow_default = forms.BooleanField(label=gettext_lazy("follow default"), required=False)
    own = OwnField(
        label=gettext_lazy("Settings of its own (YAML)"),
        help_text=gettext_lazy(
            "how, lm_studio, warning_threshold, goal, accept, breaking_strategy and payloads, as in the exported file. "
            "What is left out is as for everybody."
        ),
        widget=forms.Textarea({"rows": 6}),
    )

    def __init__(self, at: int, **given: Any) -> None:
        super().__init__(at, **given)
        self.kept = self["limit"].value() or ""
        attrs = self.fields["limit"].widget.attrs
        attrs["placeholder"] = grouped(self.texts.get("default_limit") or str(ContextConfig().default_limit))
        attrs |= {"disabled": True} if self["follow_default"].value() else {}

    def add_error(self, field: str | None, error: Any) -> None:
        """A wrong limit is shown, and can be corrected, also where the type follows the default."""
        super().add_error(field, error)
        if field == "limit":
            self.fields[field].widget.attrs.pop("disabled", None)

    def document(self, default_limit: object) -> dict[str, Any]:
        said = dict(self.cleaned_data)
        if said["follow_default"] and said["limit"] == "":
            said["limit"] = default_limit
        return {**said, OWN: json.loads(said[OWN] or "{}")}


class ToolForm(RowForm):
    """A tool's own retries. What is empty is as for all tools."""

    path = TOOLS
    tool = TextField(label=gettext_lazy("Tool"), **NAME)

    def __init__(self, at: int, **given: Any) -> None:
        super().__init__(at, **given)
        for key, check in RETRY.items():
            path = f"{RETRY_DEFAULT}.{key}"
            field = NumberField(label=FIELDS[path].label, check=check, placeholder=self.texts.get(path, ""))
            self.fields[key] = field

    def document(self) -> dict[str, Any]:
        return {key: self.cleaned_data[key] for key in RETRY if self.cleaned_data[key] != ""}


class SettingsForm(PathForm):
    """Everybody's settings; which agent prunes; and of each agent what comes first when its context fills.

    `config` is what the page says, None where that cannot be. `agents` are settings of their own that a file gives
    agents, kept on the page until it is saved.
    """

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    agents = forms.Field(required=False, widget=forms.HiddenInput)
    pruning_agent = AgentField(
        label=gettext_lazy("Who decides which older messages go"),
        required=False,
        queryset=None,
        to_field_name="slug",
        empty_label=gettext_lazy("Same as current agent"),
        help_text=gettext_lazy(
            "A model that is asked which older messages go: with LM Studio, and wherever the chain has “Let the "
            "pruning agent decide” in it. A small, quick model often suffices."
        ),
    )

    def __init__(self, texts: Texts, *, is_sent: bool = False) -> None:
        """Texts that were sent are checked, others only shown."""
        given: dict[str, Any] = {"data": texts} if is_sent else {"initial": texts}
        super().__init__(**given)
        self.config: ContextConfig | None = None
        self.fields |= {path: field_of(path, words) for path, words in FIELDS.items()}
        self.fields |= {CHAIN: forms.Field(required=False, widget=forms.MultipleHiddenInput), **when_full_fields()}
        self.fields["pruning_agent"].queryset = pruning_agents(context_settings().pruning_agent_id)  # type: ignore[attr-defined]
        self.llms = [LlmForm(at, **given) for at in rows_of(LLMS, texts)]
        self.tools = [ToolForm(at, **given) for at in rows_of(TOOLS, texts)]

    @cached_property
    def parts(self) -> dict[str, list[Input]]:
        return {name: [cast("Input", self[path]) for path in part] for name, part in PARTS.items()}

    @property
    def chain(self) -> forms.BoundField:
        return self[CHAIN]

    @property
    def when_full(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(f"{AGENTS}.")]

    @property
    def chosen_when_full(self) -> dict[str, str]:
        """Of agents by their short names."""
        said = {field.name.split(".")[1]: self.cleaned_data.get(field.name) for field in self.when_full}
        return {slug: first for slug, first in said.items() if first}

    @property
    def inputs(self) -> Iterator[forms.BoundField]:
        """Those of the rows of lists too."""
        for form in (self, *self.llms, *self.tools):
            yield from form

    @cached_property
    def wrong(self) -> list[forms.BoundField]:
        """What must be corrected before anything is saved. This form comes first: it checks the rows with itself."""
        return [one for one in self.inputs if one.errors]

    def is_valid(self) -> bool:
        return self.is_bound and not self.wrong

    def clean_agents(self) -> Mapping[str, str]:
        """Without those that were deleted while the page was open."""
        found = read_agents(self.cleaned_data["agents"] or "")
        known = set(Agent.objects.filter(slug__in=found, is_direct=False).values_list("slug", flat=True))
        return {slug: own for slug, own in found.items() if slug in known}

    def clean(self) -> None:
        """The engine refuses one key at a time: a refused key is left out, and the rest is loaded again."""
        llms, tools = said(self.llms), said(self.tools)
        _refuse_doubles(llms, "type")
        _refuse_doubles(tools, "tool")
        _refuse_too_many(llms, "type")
        _refuse_too_many(tools, "tool")
        while self.config is None:
            llms = [row for row in llms if not row.errors]
            try:
                self.config = configuration.load(self._yaml(llms, tools))
            except InvalidConfig as error:
                if not self._refuse(error.path.removeprefix(f"{ROOT}."), worded(error), llms):
                    break
        if self.config is None:
            return
        for path, words in faults_of(self.config):
            self._refuse(path, words, llms)
        for path, words in faults_of_agents(self.cleaned_data.get("agents", {}), self.config):
            self.add_error("agents", f"{path}: {words}")

    def _yaml(self, llms: Sequence[LlmForm], tools: Sequence[ToolForm]) -> str:
        """The document as a file has it. What is empty is left out, and has its default."""
        found: dict[str, Any] = {}
        default = self.cleaned_data.get("default_limit") or ContextConfig().default_limit
        for path in (*FIELDS, CHAIN):
            put(found, path, self.cleaned_data.get(path))
        put(found, LLMS, [row.document(default) for row in llms])
        put(found, TOOLS, {row.cleaned_data["tool"]: row.document() for row in tools if not row.errors})
        return yaml.safe_dump({ROOT: found}, allow_unicode=True)

    def _refuse(self, path: str, words: str, llms: Sequence[LlmForm]) -> bool:
        """Tell it beside the key's field; beside the list's, where it is inside one. False: something is told there."""
        row = re.match(rf"{LLMS}\[(\d+)\]\.(\w+)", path)
        form, name = (llms[int(row[1])], row[2]) if row else (self, path.partition("[")[0])
        is_new = name not in form.errors
        form.add_error(name, words)
        return is_new


def _refuse_doubles(rows: Sequence[RowForm], field: str) -> None:
    seen: set[str] = set()
    for row in rows:
        name = row.cleaned_data.get(field, "")
        if name and name in seen:
            row.add_error(field, _("%(name)s stands here twice.") % {"name": name})
        seen.add(name)


def _refuse_too_many(rows: Sequence[RowForm], field: str) -> None:
    for row in rows[MOST_ROWS:]:
        row.add_error(field, too_many())


def when_full_fields() -> dict[str, forms.Field]:
    """A field for each agent: what comes first when its context fills."""
    agents = Agent.objects.filter(is_direct=False).order_by("name").values_list("slug", "name")
    return {
        f"{AGENTS}.{slug}.{WHEN_FULL}": forms.ChoiceField(label=name, required=False, choices=WhenFull.choices)
        for slug, name in agents
    }


def said(rows: Sequence[Row]) -> list[Row]:
    """The rows in which anything stands, each checked for itself."""
    for row in rows:
        row.full_clean()
    return [row for row in rows if row.has_changed()]


def put(document: dict[str, Any], path: str, value: object) -> None:
    *sections, key = path.split(".")
    for name in sections:
        document = document.setdefault(name, {})
    if value not in ("", None):
        document[key] = value
