"""Parses one catalogue file into frozen values, or raises one error that names file, line and field. No database.

YAML is read as nodes, which have line numbers and show duplicate keys. Their values are checked by pydantic, like the
files of dialogs.
"""

from __future__ import annotations

import math
import re
from dataclasses import field
from typing import Annotated, Any

import yaml
from django.utils.translation import gettext as _
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticUseDefault

from dialogs.common.file_fields import Location, OneOf, Positive, Record, path_of, problems_of
from dialogs.common.secrets import may_hold_key
from dialogs.models.llm import Compaction
from dialogs.models.provider import ProviderKind
from dialogs.providers.addresses import clean_base_url

# PyYAML's C loader, if it was built: ten times as fast, and this runs at every start.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Scripted providers are for tests, not for files.
KINDS = {
    **{kind.value: kind for kind in ProviderKind if kind != ProviderKind.SCRIPTED},
    "openai-compatible": ProviderKind.OPENAI,
    "anthropic-compatible": ProviderKind.ANTHROPIC,
}
THRESHOLDS = ("optimal_max_tokens", "critical_max_tokens", "caution_remediation_cadence_generations")
TEXT = "tag:yaml.org,2002:str"


class CatalogueError(ValueError):
    """A catalogue file cannot be used. `str(error)` names the file, the line and the field."""

    def __init__(self, *, file: str, line: int | None = None, field: str = "", problem: str) -> None:
        self.file, self.line, self.field, self.problem = file, line, field, problem
        place = f"{file}, line {line}" if line else file
        super().__init__(f"{place}: {field}: {problem}" if field else f"{place}: {problem}")


def _rounded_down(value: Any) -> Any:
    return math.floor(value) if isinstance(value, float) and math.isfinite(value) else value


def _short_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        raise ValueError(_("must have letters, digits, dashes and underscores only, 60 at most."))
    return name


def _kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(_("must be one of: %(choices)s.") % {"choices": ", ".join(KINDS)})
    return KINDS[name]


def _variable(name: str) -> str:
    if name and not may_hold_key(name):
        raise ValueError(_("must have KEY or TOKEN in its name, or be listed in DOMINDS_KEY_VARIABLES."))
    return name


def _base_url(text: str, info: ValidationInfo) -> str:
    return clean_base_url(text, kind=info.data.get("kind", ""))


def _web_address(text: str) -> str:
    if text and not re.match(r"https?://\S+$", text):
        raise ValueError(_("must be a web address."))
    return text


def _unless_null(value: Any) -> Any:
    if value is None:
        raise PydanticUseDefault
    return value


def _or_empty(value: Any) -> Any:
    """An empty value: a model without fields, a file without providers."""
    return {} if value is None else value


def _text(most: int) -> Any:
    return StringConstraints(strict=True, strip_whitespace=True, max_length=most)


# A key without a value counts as left out.
IF_GIVEN = BeforeValidator(_unless_null)
# A fraction is rounded down.
Tokens = Annotated[Positive, BeforeValidator(_rounded_down)]


class ModelEntry(Record):
    """One model. Fields are named as in the file and as in the table."""

    name: Annotated[str, _text(200), IF_GIVEN] = ""
    context_length: Tokens | None = None
    input_length: Tokens | None = None
    output_length: Tokens | None = None
    optimal_max_tokens: Tokens | None = None
    critical_max_tokens: Tokens | None = None
    caution_remediation_cadence_generations: Tokens | None = None
    compaction: Annotated[str, OneOf(Compaction.values), IF_GIVEN] = Compaction.AUTOMATIC
    tokenizer: Annotated[str, _text(200), IF_GIVEN] = ""
    source_url: Annotated[str, _text(500), AfterValidator(_web_address), IF_GIVEN] = ""


Models = dict[Annotated[str, Field(max_length=200)], Annotated[ModelEntry, BeforeValidator(_or_empty)]]


class ProviderEntry(Record):
    kind: Annotated[str, _text(60), AfterValidator(_kind), Field(alias="apiType")]
    base_url: Annotated[str, _text(500), AfterValidator(_base_url), Field(alias="baseUrl")]
    name: Annotated[str, _text(120), IF_GIVEN] = ""
    api_key_env: Annotated[str, _text(120), AfterValidator(_variable), IF_GIVEN, Field(alias="apiKeyEnvVar")] = ""
    models: Annotated[Models, IF_GIVEN] = field(default_factory=dict)


Providers = dict[Annotated[str, AfterValidator(_short_name)], ProviderEntry]


class Catalogue(Record):
    providers: Annotated[Providers, IF_GIVEN] = field(default_factory=dict)


CATALOGUE: TypeAdapter[Catalogue] = TypeAdapter(Annotated[Catalogue, BeforeValidator(_or_empty)])


def read_catalogue(text: str, *, file: str, ignored: list[CatalogueError] | None = None) -> dict[str, ProviderEntry]:
    """The providers of a file, by their short names. Raises CatalogueError. A threshold that is no number counts as
    left out, and is added to `ignored`."""
    nodes = _Nodes(file, text)
    try:
        return CATALOGUE.validate_python(nodes.values).providers
    except ValidationError as error:
        found = [(location, problem) for location, _inside, problem in problems_of(error)]
    for location, problem in found:
        if not _is_threshold(location):
            raise nodes.error(location, problem)
    for location, problem in found:
        nodes.leave_out(location)
        if ignored is not None:
            ignored.append(nodes.error(location, _("%(problem)s The default counts.") % {"problem": problem}))
    return CATALOGUE.validate_python(nodes.values).providers


def _is_threshold(location: Location) -> bool:
    """Under `providers`, a provider, `models` and a model."""
    return len(location) == 5 and location[-1] in THRESHOLDS


class _Nodes:
    """A file's nodes, their values, and their lines."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.constructor = yaml.constructor.SafeConstructor()
        # What each mapping says, by its node: one that is repeated by an alias is read once, even inside itself.
        self.read: dict[yaml.Node, dict[str, Any]] = {}
        try:
            self.root: yaml.Node | None = yaml.compose(text, Loader=LOADER)
            self.values: Any = self._value(self.root, ()) if self.root else None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = "no YAML: " + (getattr(error, "problem", None) or str(error).splitlines()[0])
            raise CatalogueError(file=file, line=mark.line + 1 if mark else None, problem=problem) from error
        except RecursionError as error:
            raise CatalogueError(file=file, problem=_("is nested too deeply.")) from error

    def _value(self, node: yaml.Node, way: tuple[str, ...]) -> Any:
        """What a node says. A list says nothing: no field is one."""
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, way)
        if not isinstance(node, yaml.MappingNode):
            return []
        if node in self.read:
            return self.read[node]
        values = self.read[node] = {}
        for key, value in node.value:
            name = self._name(key, way)
            if name in values:
                raise self.error((*way, name), _("is written twice."), at=key)
            values[name] = self._value(value, (*way, name))
        return values

    def _name(self, key: yaml.Node, way: tuple[str, ...]) -> str:
        if not isinstance(key, yaml.ScalarNode) or not key.value:
            raise self.error(way, _("must have texts as keys."), at=key)
        name: str = key.value
        return name

    def _scalar(self, node: yaml.ScalarNode, way: tuple[str, ...]) -> Any:
        # YAML reads a bare `off` as false.
        if node.tag == TEXT or (way[-1:] == ("compaction",) and node.value == "off"):
            return node.value
        try:
            return self.constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError):  # invalid for its tag
            return node  # no field accepts a node

    def error(self, location: Location, problem: str, *, at: yaml.Node | None = None) -> CatalogueError:
        line = at.start_mark.line if at else self._line(location)
        return CatalogueError(file=self.file, line=line + 1, field=path_of(location), problem=problem)

    def _line(self, location: Location) -> int:
        """The line of the last key in the path that exists."""
        node, line = self.root, 0
        for step in location:
            for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
                if key.value == step:
                    node, line = value, key.start_mark.line
                    break
        return line

    def leave_out(self, location: Location) -> None:
        at = self.values
        for step in location[:-1]:
            at = at[step]
        at.pop(location[-1], None)
