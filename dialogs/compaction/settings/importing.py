"""Reading a YAML file of settings: into a sheet, or into a list of what is wrong with it, each with its line.

What it changes is shown before anything is saved: the page is filled with it, and saving is another click.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django.utils.translation import gettext as _

from dialogs.compaction.settings.checking import faults_of, own_faults, worded
from dialogs.models import Agent
from health.compaction.config import ContextConfig
from health.compaction.terms import configuration
from health.compaction.terms.configuration import AGENTS, ROOT, InvalidConfig

MOST_BYTES = 256 * 1024


@dataclass(frozen=True)
class Problem:
    """What is wrong in the file, with the key's path and its line, where they are known."""

    words: str
    path: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Brought:
    """Everybody's settings; and by their short names those that agents have of their own, empty for none any more.

    Agents that the file does not name keep theirs.
    """

    config: ContextConfig
    agents: Mapping[str, str]
    # What comes first when their contexts fill, of agents of which the file says it.
    when_full: Mapping[str, str]


def read_yaml(raw: bytes) -> Brought | list[Problem]:
    """What the file says, or what is wrong with it."""
    if len(raw) > MOST_BYTES:
        return [Problem(_("The file is larger than settings are."))]
    try:
        text = raw.decode("utf-8-sig")
        if _has_aliases(text):
            return [Problem(_("Aliases (*name) are not read here."))]
        config, agents = configuration.load(text), configuration.load_agents(text)
        found = Brought(config, agents, configuration.load_when_full(text))
    except UnicodeDecodeError:
        return [Problem(_("This is not a text file."))]
    except (yaml.YAMLError, RecursionError) as error:
        return [_not_yaml(error)]
    except InvalidConfig as error:
        return [Problem(worded(error), error.path, line_of(text, error.path))]
    faults = [(f"{ROOT}.{path}", words) for path, words in faults_of(found.config)]
    faults += faults_of_agents(found.agents, found.config)
    return [Problem(words, path, line_of(text, path)) for path, words in faults] or found


def _has_aliases(text: str) -> bool:
    """An alias of aliases can stand for more than a machine holds."""
    return any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text))


def read_agents(text: str) -> Mapping[str, str]:
    """What a file's agents were told to have, as the page keeps it until it is saved; none where that is spoiled.

    It was checked with the rest of its file, may be longer than that, and is checked again with the page's settings.
    """
    try:
        return {} if _has_aliases(text) else configuration.load_agents(text)
    except (yaml.YAMLError, RecursionError, InvalidConfig):
        return {}


def faults_of_agents(agents: Mapping[str, str], config: ContextConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong): an agent that is not here, a chain or numbers that make no sense over everybody's."""
    known = set(Agent.objects.filter(slug__in=agents, is_direct=False).values_list("slug", flat=True))
    for slug, own in agents.items():
        if slug not in known:
            yield f"{AGENTS}.{slug}", _("There is no such agent: %(name)s.") % {"name": slug}
        yield from ((f"{AGENTS}.{slug}", words) for words in own_faults(own))
        try:
            configuration.with_own(config, own)
        except InvalidConfig as error:
            yield f"{AGENTS}.{slug}", worded(error)


def line_of(text: str, path: str) -> int | None:
    """The line on which the key at this path stands, or else the nearest section above it that the file has."""
    node: Any = yaml.compose(text) if path else None
    line = None
    rest = path
    while rest and node is not None:
        found = _child(node, rest)
        if found is None:
            return line
        node, key, rest = found
        line = key.start_mark.line + 1
    return line


def _child(node: Any, rest: str) -> tuple[Any, Any, str] | None:
    """(value, where it is named, the rest of the path): `.key` of a mapping, `[3]` of a list."""
    if isinstance(node, yaml.SequenceNode) and rest.startswith("["):
        place, _bracket, rest = rest[1:].partition("]")
        item = node.value[int(place)]
        return item, item, rest.removeprefix(".")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value)
            if rest == name or rest.startswith((f"{name}.", f"{name}[")):
                return value, key, rest[len(name) :].removeprefix(".")
    return None


def _not_yaml(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    words = _("This is not YAML: %(problem)s") % {"problem": getattr(error, "problem", None) or type(error).__name__}
    return Problem(words, line=mark.line + 1 if mark else None)
