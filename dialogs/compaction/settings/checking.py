"""Checks settings, with errors in the reader's language: what `configuration.load` refuses, and rules of lists (known
strategies, no duplicates). Also warnings about limits and the pruning agent, with ids `health.*` and hints, for the
settings page and `check --database`.

And reading a YAML file of settings: its values, or its problems with their lines. The page is filled with them; saving
is another click.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.compaction.reads.context_settings import lost_pruning_agent
from dialogs.compaction.settings.fields import CHAIN, LLMS, TOOLS
from dialogs.llms.reads import choosable_agents, configured
from dialogs.models import LLM, Agent
from health.compaction.config import ContextConfig
from health.compaction.strategies import REGISTRY
from health.compaction.terms import configuration
from health.compaction.terms.configuration import ABOVE_IT_ANSWERS_ARE_CUT, AGENTS, BREAKING, OWN, ROOT, InvalidConfig
from health.limits import EffectiveLimit, effective_limit
from health.models import ContextSettings
from health.monitor.levels import Configured, Thresholds, context_window, thresholds

# The most LLM types, and tools, that the page can show and send.
MOST_ROWS = 1_000
MOST_BYTES = 256 * 1024
WORDINGS: Mapping[str, Promise] = {
    r"a whole number of at least ([\d,]+)": gettext_lazy("Must be a whole number of at least %s."),
    r"a number of at least (\S+)": gettext_lazy("Must be a number of at least %s."),
    r"a number from 0 to 1": gettext_lazy("Must be a number from 0 to 1."),
    re.escape(ABOVE_IT_ANSWERS_ARE_CUT): gettext_lazy(
        "Must be above 0 and at most 0.9: from there on an answer under way is cut, which compaction is to prevent."
    ),
    r"below the warning_threshold of (\S+)": gettext_lazy("Must be below the warning threshold of %s."),
    r"at least the goal of (\S+)": gettext_lazy("Must be at least the goal of %s."),
    r"at most ([\d,]+)": gettext_lazy("Must be at most %s."),
    r"a name in printable characters": gettext_lazy("Must be a name."),
    r"true or false": gettext_lazy("Must be true or false."),
    r"(\w+(?: or \w+)+)": gettext_lazy("Must be one of: %s."),
}


def faults_of(config: ContextConfig) -> Iterator[tuple[str, str]]:
    """Faults that `configuration.load` accepts, by the key's path."""
    for place, words in _faults_of_chain(config.chain_order):
        yield f"{CHAIN}{place}", words
    for at, llm in enumerate(config.per_llm):
        yield from ((f"{LLMS}[{at}].{OWN}", words) for words in own_faults(llm.own))
    types = [llm.type for llm in config.per_llm]
    for at, name in enumerate(types):
        if name in types[:at]:
            yield f"{LLMS}[{at}].type", _("%(name)s stands here twice.") % {"name": name}
    if len(types) > MOST_ROWS:
        yield f"{LLMS}[{MOST_ROWS}].type", too_many()
    if len(config.retry_per_tool) > MOST_ROWS:
        yield f"{TOOLS}.{config.retry_per_tool[MOST_ROWS][0]}", too_many()


def too_many() -> str:
    return _("There may be %(count)s of these at most.") % {"count": f"{MOST_ROWS:,}"}


def own_faults(own: str) -> Iterator[str]:
    """What is wrong with the chain of an agent's or a type's own settings."""
    chain = json.loads(own).get(BREAKING, {}).get("chain_order", []) if own else []
    yield from (words for _place, words in _faults_of_chain(chain))


def _faults_of_chain(chain: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A lone strategy that repeats others, a name unknown or twice; with the place in the chain where there is one."""
    if list(chain) == ["hybrid"]:
        yield "[0]", _("It repeats what stands before it: put another strategy there.")
    for at, name in enumerate(chain):
        if name not in REGISTRY:
            yield f"[{at}]", _("There is no such strategy: %(name)s.") % {"name": name}
    for name, count in Counter(chain).items():
        if count > 1:
            yield "", _("%(name)s stands here twice.") % {"name": name}


def worded(error: InvalidConfig) -> str:
    """The refusal for the place beside the field: what the value must be. In the engine's words where it has others."""
    for pattern, words in WORDINGS.items():
        match = re.fullmatch(pattern, error.must)
        if match:
            return str(words) % match.groups() if match.groups() else str(words)
    return str(error)


def worded_inside(error: InvalidConfig) -> str:
    """The refusal for a field that holds many keys: it names the key where the engine's words do not."""
    said = worded(error)
    return said if said == str(error) else f"{error.path.partition(f'.{OWN}.')[2] or error.path}: {said}"


def odd_limits(config: ContextConfig) -> Iterator[CheckMessage]:
    """A warning for each limit of an LLM or agent in use that makes little sense."""
    for llm in LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"):
        yield from limit_warnings(llm.slug, configured(llm))
        yield from type_warnings(llm.slug, llm.limit_type, config)
    for agent in choosable_agents().select_related("llm__provider"):
        if agent.context_budget or agent.llm.limit_type:
            yield from _odd_budget(agent, config)


def _odd_budget(agent: Agent, config: ContextConfig) -> Iterator[CheckMessage]:
    limit = agent.context_limit if agent.context_budget else None
    uncapped = effective_limit(config, agent_limit=limit, llm_type=agent.llm.limit_type, is_p1=agent.is_p1)
    window = context_window(configured(agent.llm))
    yield from budget_warnings(agent.name, uncapped, window=window)


def pruning_problem(settings: ContextSettings) -> str:
    """Why the chosen pruning agent does not prune; empty where it does, or none is chosen."""
    lost, chosen = lost_pruning_agent(settings), settings.pruning_agent
    if lost:
        return _("The chosen pruning agent “%(name)s” was deleted. Each dialog's own LLM prunes instead.") % {
            "name": lost
        }
    if chosen is None or choosable_agents().filter(pk=chosen.pk).exists():
        return ""
    return _(
        "The chosen pruning agent “%(name)s” cannot be used: it, its LLM or its provider is switched off. "
        "Each dialog's own LLM prunes instead."
    ) % {"name": chosen}


def limit_warnings(name: str, configured: Configured) -> list[CheckWarning]:
    """Warnings, not errors: an admin's numbers are used as they are."""
    window = context_window(configured)
    if window is None:
        return [_window_unknown(name)]
    limits = thresholds(configured, window=window)
    found = [_beyond_window(name, limits, window)] if limits.critical_max_tokens > window else []
    return found + ([_no_caution(name, limits)] if limits.optimal_max_tokens >= limits.critical_max_tokens else [])


def _no_caution(name: str, limits: Thresholds) -> CheckWarning:
    numbers = {
        "name": name,
        "optimal": f"{limits.optimal_max_tokens:,}",
        "critical": f"{limits.critical_max_tokens:,}",
    }
    return CheckWarning(
        _("“%(name)s” can never reach caution: optimal %(optimal)s is not below critical %(critical)s.") % numbers,
        hint=_("Set optimal max tokens below critical, for example to three quarters of the window."),
        id="health.W001",
    )


def _beyond_window(name: str, limits: Thresholds, window: int) -> CheckWarning:
    numbers = {"name": name, "critical": f"{limits.critical_max_tokens:,}", "window": f"{window:,}"}
    return CheckWarning(
        _("“%(name)s” can never reach critical: %(critical)s is more than its window of %(window)s.") % numbers,
        hint=_("Lower critical max tokens, or leave it empty for nine tenths of the window."),
        id="health.W002",
    )


def _window_unknown(name: str) -> CheckWarning:
    return CheckWarning(
        _("The context window of %(name)s is not known, so its health stays unknown.") % {"name": name},
        hint=_("Run “Read limits now” in the admin, or set the context length by hand."),
        id="health.W003",
    )


def budget_warnings(name: str, uncapped: EffectiveLimit, *, window: int | None) -> list[CheckWarning]:
    """Warnings about an agent's effective limit, before the window caps it."""
    chosen, limit = uncapped.trace[0].tokens, uncapped.tokens
    numbers = {"name": name, "chosen": f"{chosen:,}", "limit": f"{limit:,}", "window": f"{window or 0:,}"}
    found = []
    if uncapped.trace[-1].what == "floor":
        words = _("The limit of %(name)s is %(chosen)s, below the floor: %(limit)s holds.") % numbers
        found.append(CheckWarning(words, hint=_("Raise the limit, or leave it empty."), id="health.W004"))
    if window is not None and limit > window:
        words = _("The limit of %(name)s is %(limit)s, more than its LLM's window of %(window)s.") % numbers
        hint = _("Lower the limit, or load the model with a larger context.")
        found.append(CheckWarning(words, hint=hint, id="health.W005"))
    return found


def type_warnings(name: str, limit_type: str, config: ContextConfig) -> list[CheckWarning]:
    """Warnings about an LLM whose limit type is not, or no longer, one of the compaction settings'."""
    if not limit_type or any(llm.type == limit_type for llm in config.per_llm):
        return []
    words = _("%(name)s has the limit type %(type)s, which the compaction settings do not know.")
    hint = _("Add the type there, or choose another: until then the default limit holds.")
    return [CheckWarning(words % {"name": name, "type": limit_type}, hint=hint, id="health.W006")]


@dataclass(frozen=True)
class Problem:
    """What is wrong in the file, with the key's path and its line, where they are known."""

    words: str
    path: str = ""
    line: int | None = None


@dataclass(frozen=True)
class SettingsFile:
    """Everybody's settings; and by their short names those that agents have of their own, empty for none any more.

    Agents that the file does not name keep theirs.
    """

    config: ContextConfig
    agents: Mapping[str, str]
    # What comes first when their contexts fill, of agents of which the file says it.
    when_full: Mapping[str, str]


def read_yaml(raw: bytes) -> SettingsFile | list[Problem]:
    """The settings in the file, or the list of its problems."""
    if len(raw) > MOST_BYTES:
        return [Problem(_("The file is larger than settings are."))]
    try:
        text = raw.decode("utf-8-sig")
        if _has_aliases(text):
            return [Problem(_("Aliases (*name) are not read here."))]
        found = SettingsFile(configuration.load(text), *configuration.load_agents(text))
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
        return {} if _has_aliases(text) else configuration.load_agents(text)[0]
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
