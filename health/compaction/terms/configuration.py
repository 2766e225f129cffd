"""The configuration as YAML: read and checked key by key, and written again so that it reads the same.

Keys that are missing have their defaults. Keys that are not known, and values that make no sense, are refused with
the key's path, so that a person finds the line. Our own keys stand beside the documented ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import yaml

from health.compaction.config import ContextConfig, LlmLimit, RetryPolicy, RewardLog
from health.compaction.terms.config_checks import Check, InvalidConfig, each, name, one_of, refusal, section
from health.compaction.terms.pressure import SEVERE_SHARE

__all__ = ["InvalidConfig", "dump", "load"]

ABOVE_IT_ANSWERS_ARE_CUT = f"above 0 and at most {SEVERE_SHARE:g}, as an answer under way is cut from there on"
ROOT, BREAKING, RETRIES = "context_config", "breaking_strategy", "retry_policies"
# Beside everybody's settings a file may have those of agents, each under the agent's short name.
AGENTS = "agents"
# Ten years.
MOST_LOG_DAYS = 3_650
# The key under which an LLM type has settings of its own, and the keys that it and an agent may set for themselves.
OWN, OWN_KEYS = "own", ("how", "lm_studio", "warning_threshold", "goal", "accept", BREAKING, "payloads")
# Only an agent also says what comes first when its context fills.
WHEN_FULL = "when_full"


def checks_of(kind: type) -> dict[str, Check]:
    """What each key of a section may be, by the types of this dataclass's fields."""
    return {key: _check_of(hint) for key, hint in get_type_hints(kind, include_extras=True).items()}


def _check_of(hint: Any) -> Check:
    if get_origin(hint) is Annotated:
        check: Check = hint.__metadata__[0]
        return check
    if get_origin(hint) is tuple:
        return each(_check_of(get_args(hint)[0]))
    return one_of(hint) if issubclass(hint, StrEnum) else section(checks_of(hint), hint)


def _own(value: object, path: str) -> str:
    """The settings of an LLM type's or an agent's own, each key checked, as JSON. Empty if there are none."""
    if value is None or value == {}:
        return ""
    section({key: KEYS[key] for key in OWN_KEYS})(value, path)
    return json.dumps(value, sort_keys=True)


LLM_LIMIT = section({**checks_of(LlmLimit), OWN: _own})


def _per_llm(value: object, path: str) -> LlmLimit:
    found = LLM_LIMIT(value, path)
    for key in ("type", "limit", "follow_default"):
        if key not in found:
            raise InvalidConfig(f"{path} lacks the key {key!r}.", path=path)
    return LlmLimit(**found)


class WhenFull(StrEnum):
    COMPACT = "compact"
    REMIND = "remind"
    NO_PROMPTS = "no_prompts"


def _agents(value: object, path: str) -> dict[str, tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise refusal(path, "a section with a key for each agent", value)
    return {name(slug, path): _agent(said, f"{path}.{slug}") for slug, said in value.items()}


def _agent(value: object, path: str) -> tuple[str, str]:
    """An agent's own settings as JSON, and what comes first when its context fills. Either may be empty."""
    if not (isinstance(value, Mapping) and WHEN_FULL in value):
        return _own(value, path), ""
    first = one_of(WhenFull)(value[WHEN_FULL], f"{path}.{WHEN_FULL}")
    return _own({key: one for key, one in value.items() if key != WHEN_FULL}, path), str(first)


def _switch(value: object, path: str) -> StrEnum:
    """`on` or `off`. YAML reads a bare `on` as true."""
    word = ("off", "on")[value] if isinstance(value, bool) else value
    return one_of(RewardLog)(word, path)


def _per_tool(value: object, path: str) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise refusal(path, "a section with a key for each tool", value)
    return {name(tool, path): section(RETRY)(policy, f"{path}.{tool}") for tool, policy in value.items()}


RETRY: Mapping[str, Check] = checks_of(RetryPolicy)
EVERY: Mapping[str, Check] = checks_of(ContextConfig)
# Sections of `ContextConfig` that belong to no strategy.
OTHERS = ("payloads", "retry_default")
# The keys of the section of strategies: the chain, and the numbers of each strategy.
STRATEGIES: Mapping[str, Check] = {
    one.name: EVERY[one.name]
    for one in fields(ContextConfig)
    if one.name == "chain_order" or (one.default_factory is not MISSING and one.name not in OTHERS)
}
KEYS: Mapping[str, Check] = {
    **{key: check for key, check in EVERY.items() if key not in (*STRATEGIES, "retry_default", "retry_per_tool")},
    "per_llm": each(_per_llm),
    "reward_log": _switch,
    BREAKING: section(STRATEGIES),
    RETRIES: section({"default": section(RETRY), "per_tool": _per_tool}),
}


class _OnceOnly(yaml.SafeLoader):
    """Refuses a key that stands twice: nobody knows which of two values was meant."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _value in node.value:
            if key.value in seen and isinstance(key.value, str):
                where = f"line {key.start_mark.line + 1}"
                raise InvalidConfig(f"The key {key.value!r} is written twice ({where}).", path=key.value)
            seen.add(key.value if isinstance(key.value, str) else id(key))
        return super().construct_mapping(node, deep)


# PyYAML raises the last four for values that do not fit their tag or a float, and for keys that are lists.
NO_YAML = (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def _read(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_OnceOnly)  # noqa: S506  # it is a safe loader
    except InvalidConfig:
        raise
    except NO_YAML as error:
        raise InvalidConfig(f"This is not YAML: {error}") from error


def load(text: str, *, was_stored: bool = False) -> ContextConfig:
    """The configuration that the YAML states. Raises InvalidConfig, whose message names the key.

    `was_stored`: an earlier version may have accepted it, so a threshold that is too high today is lowered.
    """
    document = _read(text)
    found = section({ROOT: section(KEYS), AGENTS: _agents})({} if document is None else document, "").get(ROOT, {})
    retries = found.pop(RETRIES, None)
    config = ContextConfig(**found.pop(BREAKING, {}), **found, **({} if retries is None else _retry(retries)))
    config = _lowered(config) if was_stored else config
    _check_order(config)
    if not was_stored:
        _check_types(config)
    return config


def load_agents(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """What a file says of agents, by their short names: the settings of their own, as JSON of `load_own`, empty for
    none; and what comes first when their contexts fill, of those of which it says that. Raises InvalidConfig."""
    document = _read(text)
    found = section({ROOT: lambda *_any: None, AGENTS: _agents})({} if document is None else document, "")
    agents: dict[str, tuple[str, str]] = found.get(AGENTS, {})
    own = {slug: settings for slug, (settings, _first) in agents.items()}
    return own, {slug: first for slug, (_settings, first) in agents.items() if first}


def load_own(text: str) -> str:
    """An agent's own settings as JSON, for `with_own`; empty for a text without any. The keys are those of the whole
    document, with or without its root. Raises InvalidConfig."""
    document = _read(text)
    if isinstance(document, Mapping) and list(document) == [ROOT]:
        document = document[ROOT]
    return _own(document, "")


def with_own(config: ContextConfig, *layers: str) -> ContextConfig:
    """The configuration with its values replaced by those of each layer, in order. A layer is JSON of `load_own`."""
    said = [json.loads(layer) for layer in layers if layer]
    if not said:
        return config
    document = _document(config)
    for layer in said:
        document = _merged(document, layer)
    return load(yaml.safe_dump({ROOT: document}))


def own_as_yaml(own: str) -> str:
    return yaml.safe_dump(json.loads(own), sort_keys=False, allow_unicode=True) if own else ""


def _merged(below: Any, above: Any) -> Any:
    """Sections are merged key by key; a list or a value takes the place of what was there."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{key: _merged(below[key], one) if key in below else one for key, one in above.items()}}


def dump(
    config: ContextConfig,
    agents: Mapping[str, str] = MappingProxyType({}),
    when_full: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """YAML that `load` reads as the same configuration, as documented, and `load_agents` as these."""
    of_agents: dict[str, Any] = {slug: {WHEN_FULL: first} for slug, first in when_full.items()}
    for slug, own in agents.items():
        of_agents[slug] = of_agents.get(slug, {}) | json.loads(own or "{}")
    document = {ROOT: _document(config)} | ({AGENTS: of_agents} if of_agents else {})
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _document(config: ContextConfig) -> dict[str, Any]:
    plain = _plain(asdict(config))
    for llm in plain["per_llm"]:
        if own := llm.pop(OWN):
            llm[OWN] = json.loads(own)
    retries = {"default": plain.pop("retry_default"), "per_tool": dict(plain.pop("retry_per_tool"))}
    breaking = {key: plain.pop(key) for key in STRATEGIES}
    return plain | {BREAKING: breaking, RETRIES: retries}


def _retry(found: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's policy inherits what it does not say; a document that names no tool has none of its own."""
    default = found.get("default", {})
    tools = found.get("per_tool", {})
    return {
        "retry_default": RetryPolicy(**default),
        "retry_per_tool": tuple((tool, RetryPolicy(**default | policy)) for tool, policy in tools.items()),
    }


def _lowered(config: ContextConfig) -> ContextConfig:
    """With a threshold of at most nine tenths, a goal below it, and a log of rewards of at most ten years."""
    config = replace(config, reward_log_days=min(config.reward_log_days, MOST_LOG_DAYS))
    if config.warning_threshold <= SEVERE_SHARE:
        return config
    goal = config.goal if config.goal < SEVERE_SHARE else SEVERE_SHARE - 0.1
    return replace(config, warning_threshold=SEVERE_SHARE, goal=goal, accept=max(goal, config.accept))


def _check_order(config: ContextConfig) -> None:
    """Checks keys against each other. A run must aim below its threshold, or the next one would begin at once; and it
    must begin before an answer under way is cut."""
    if not 0 < config.warning_threshold <= SEVERE_SHARE:
        raise refusal(f"{ROOT}.warning_threshold", ABOVE_IT_ANSWERS_ARE_CUT, config.warning_threshold)
    if config.reward_log_days > MOST_LOG_DAYS:
        raise refusal(f"{ROOT}.reward_log_days", f"at most {MOST_LOG_DAYS:,}", config.reward_log_days)
    if config.goal >= config.warning_threshold:
        raise refusal(f"{ROOT}.goal", f"below the warning_threshold of {config.warning_threshold:g}", config.goal)
    if config.accept < config.goal:
        raise refusal(f"{ROOT}.accept", f"at least the goal of {config.goal:g}", config.accept)


def _check_types(config: ContextConfig) -> None:
    """Checks each LLM type's own settings together with everybody's: its goal must lie below the threshold in force."""
    everybody = replace(config, per_llm=())
    for at, llm in enumerate(config.per_llm):
        try:
            with_own(everybody, llm.own)
        except InvalidConfig as error:
            raise InvalidConfig(str(error), path=f"{ROOT}.per_llm[{at}].{OWN}", must=error.must) from error


def _plain(value: Any) -> Any:
    """Only what YAML knows: tuples as lists, choices as words."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, StrEnum) else value
