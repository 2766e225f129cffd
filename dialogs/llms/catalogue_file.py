"""One catalogue file as frozen values, or one error that names file, line and field. Reads text; knows no database.

YAML is read as nodes, not as Python values: nodes know their line, and show a key that was written twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import yaml

from dialogs.common.secrets import may_hold_key
from dialogs.models.llm import Compaction, ProviderKind
from dialogs.providers.addresses import InvalidAddress, clean_base_url

# The C reader where PyYAML was built with it: ten times as fast, and this runs at every start.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A script is no server: no file names it.
KINDS = {
    **{kind.value: kind for kind in ProviderKind if kind != ProviderKind.SCRIPTED},
    "openai-compatible": ProviderKind.OPENAI,
    "anthropic-compatible": ProviderKind.ANTHROPIC,
}
THRESHOLDS = ("optimal_max_tokens", "critical_max_tokens", "caution_remediation_cadence_generations")
LARGEST = 2**31 - 1
NULL = "tag:yaml.org,2002:null"


class CatalogueError(ValueError):
    """A catalogue file cannot be used. `str(error)` names the file, the line and the field."""

    def __init__(self, *, file: str, line: int | None = None, field: str = "", problem: str) -> None:
        self.file, self.line, self.field, self.problem = file, line, field, problem
        place = f"{file}, line {line}" if line else file
        super().__init__(f"{place}: {field}: {problem}" if field else f"{place}: {problem}")


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """One model. Fields are named as in the file and as in the table."""

    name: str = ""
    context_length: int | None = None
    input_length: int | None = None
    output_length: int | None = None
    optimal_max_tokens: int | None = None
    critical_max_tokens: int | None = None
    caution_remediation_cadence_generations: int | None = None
    compaction: str = Compaction.AUTOMATIC
    tokenizer: str = ""
    source_url: str = ""


@dataclass(frozen=True, kw_only=True)
class ProviderEntry:
    kind: str
    base_url: str
    name: str = ""
    api_key_env: str = ""
    models: Mapping[str, ModelEntry] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where in a file we are, for complaints. `ignored` are those that stop nothing."""

    file: str
    path: str = ""
    ignored: list[CatalogueError] = field(default_factory=list)

    def inside(self, name: str) -> Place:
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def refuse(self, node: yaml.Node, problem: str) -> NoReturn:
        raise CatalogueError(file=self.file, line=node.start_mark.line + 1, field=self.path, problem=problem)


def read_catalogue(text: str, *, file: str, ignored: list[CatalogueError] | None = None) -> dict[str, ProviderEntry]:
    """The providers of a file, by their short names. An empty file has none. Raises CatalogueError; a threshold that
    is no number counts as left out, and is told in `ignored`."""
    root = _compose(text, file)
    if root is None or root.tag == NULL:
        return {}
    top = _record(root, Place(file), {"providers"})
    if "providers" not in top:
        return {}
    place = Place(file, "providers", ignored=[] if ignored is None else ignored)
    return {name: _provider(node, place.inside(name)) for name, node in _names(top["providers"], place)}


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise CatalogueError(file=file, line=mark.line + 1 if mark else None, problem=f"no YAML: {problem}") from error
    except RecursionError as error:
        raise CatalogueError(file=file, problem="nested too deeply") from error
    return root


def _provider(node: yaml.Node, place: Place) -> ProviderEntry:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", place.path.removeprefix("providers.")):
        place.refuse(node, "a provider's short name has letters, digits, dashes and underscores only, 60 at most")
    found = _record(node, place, {"name", "apiType", "baseUrl", "apiKeyEnvVar", "models"})
    for required in ("apiType", "baseUrl"):
        if required not in found:
            place.inside(required).refuse(node, "is missing")
    kind = _kind(found["apiType"], place.inside("apiType"))
    models = _names(found["models"], place.inside("models")) if "models" in found else []
    return ProviderEntry(
        kind=kind,
        base_url=_base_url(found["baseUrl"], place.inside("baseUrl"), kind),
        name=_text(found["name"], place.inside("name"), 120) if "name" in found else "",
        api_key_env=_variable(found["apiKeyEnvVar"], place.inside("apiKeyEnvVar")) if "apiKeyEnvVar" in found else "",
        models={name: _model(model, place.inside("models").inside(name)) for name, model in models},
    )


def _model(node: yaml.Node, place: Place) -> ModelEntry:
    if len(place.path.rpartition(".models.")[2]) > 200:
        place.refuse(node, "a model's id has 200 characters at most")
    if node.tag == NULL:
        return ModelEntry()
    readers: dict[str, Callable[[yaml.Node, Place], Any]] = {entry.name: _tokens for entry in fields(ModelEntry)}
    readers |= {"name": lambda found, where: _text(found, where, 200), "source_url": _web_address}
    readers |= dict.fromkeys(THRESHOLDS, _threshold)
    readers |= {"compaction": _compaction, "tokenizer": lambda found, where: _text(found, where, 200)}
    found = _record(node, place, set(readers))
    return ModelEntry(**{name: readers[name](value, place.inside(name)) for name, value in found.items()})


def _names(node: yaml.Node, place: Place, allowed: set[str] | None = None) -> list[tuple[str, yaml.Node]]:
    """The entries of a mapping, each written once; with `allowed`, no others."""
    if not isinstance(node, yaml.MappingNode):
        place.refuse(node, "must be a mapping")
    seen: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if not name:
            place.refuse(key, "a key must be a text")
        if name in seen:
            place.inside(name).refuse(key, "is written twice")
        if allowed is not None and name not in allowed:
            place.inside(name).refuse(key, f"is no known field; known are {', '.join(sorted(allowed))}")
        seen[name] = value
    return list(seen.items())


def _record(node: yaml.Node, place: Place, allowed: set[str]) -> dict[str, yaml.Node]:
    """A mapping with known keys. A key without a value counts as left out."""
    return {name: value for name, value in _names(node, place, allowed) if value.tag != NULL}


def _text(node: yaml.Node, place: Place, longest: int) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
        place.refuse(node, "must be a text")
    if len(node.value) > longest:
        place.refuse(node, f"is longer than {longest} characters")
    text: str = node.value.strip()
    return text


def _variable(node: yaml.Node, place: Place) -> str:
    name = _text(node, place, 120)
    if name and not may_hold_key(name):
        place.refuse(node, "must have KEY or TOKEN in its name, or be listed in DOMINDS_KEY_VARIABLES")
    return name


def _tokens(node: yaml.Node, place: Place) -> int:
    """A whole number above zero; a fraction is rounded down."""
    try:
        value = yaml.SafeLoader("").construct_object(node) if isinstance(node, yaml.ScalarNode) else None
    except (yaml.YAMLError, ValueError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        place.refuse(node, "must be a number")
    if not 1 <= value <= LARGEST:
        place.refuse(node, f"must lie between 1 and {LARGEST:,}")
    return int(value)


def _threshold(node: yaml.Node, place: Place) -> int | None:
    """A count of tokens. One that is no such number is told and left out, so that the default counts: nothing stops."""
    try:
        return _tokens(node, place)
    except CatalogueError as error:
        problem = f"{error.problem}: the default counts"
        place.ignored.append(CatalogueError(file=error.file, line=error.line, field=error.field, problem=problem))
        return None


def _kind(node: yaml.Node, place: Place) -> str:
    kind = KINDS.get(_text(node, place, 60))
    if kind is None:
        place.refuse(node, f"must be one of {', '.join(KINDS)}")
    return kind


def _compaction(node: yaml.Node, place: Place) -> str:
    """YAML reads a bare `off` as false."""
    said = node.value if isinstance(node, yaml.ScalarNode) else ""
    if said not in Compaction.values:
        place.refuse(node, f"must be one of {', '.join(Compaction.values)}")
    return said


def _base_url(node: yaml.Node, place: Place, kind: str) -> str:
    try:
        return clean_base_url(_text(node, place, 500), kind=kind)
    except InvalidAddress as error:
        place.refuse(node, str(error))


def _web_address(node: yaml.Node, place: Place) -> str:
    text = _text(node, place, 500)
    if text and not re.match(r"https?://\S+$", text):
        place.refuse(node, "must be a web address")
    return text
