"""The settings page as a whole: what somebody has before them, and everything that is drawn of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import yaml
from django.http import QueryDict

from dialogs.compaction.reads.context_settings import (
    PRUNING_AGENT,
    agents_with_own_settings,
    ceilings,
    changes_page,
    pruning_agents,
    when_full,
)
from dialogs.compaction.settings.checking import check, odd_limits, pruning_problem
from dialogs.compaction.settings.drawing import FIRST, STRATEGIES, Drawing, id_of
from dialogs.compaction.settings.fields import AIMS, HOW, LEARNING, LIMITS, LM_STUDIO, PARAMETERS, RECOVERY, RETRIES
from dialogs.compaction.settings.importing import read_agents
from dialogs.compaction.settings.sheet import CHAIN, LLMS, TOOLS, Sheet
from dialogs.compaction.writes.context_settings import changes, own_changes, when_full_changes
from dialogs.models import Agent
from dialogs.models.agent import WhenFull
from health.compaction.config import ContextConfig
from health.compaction.terms.configuration import AGENTS, WHEN_FULL
from health.configured import config_of, context_config, context_settings
from health.models import ContextSettings


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The page as a person has it before them: texts, the agent that prunes, and the version that they began with."""

    sheet: Sheet
    agent: Agent | None
    version: int
    # What a file gives agents of their own, by their short names, until it is saved.
    own: Mapping[str, str] = field(default_factory=dict)
    # What comes first when their contexts fill, of all agents.
    when_full: Mapping[str, str] = field(default_factory=dict)
    # The id of the element that a button leads to: rows come and go, and the keyboard must not be lost with them.
    focus: str = ""

    @classmethod
    def stored(cls) -> Asked:
        return cls.of(context_config())

    @classmethod
    def of(
        cls,
        config: ContextConfig,
        own: Mapping[str, str] = MappingProxyType({}),
        first: Mapping[str, str] = MappingProxyType({}),
    ) -> Asked:
        """These settings, with the pruning agent that is chosen now: it stands in no file."""
        row, agents = context_settings(), {**when_full(), **first}
        return cls(sheet=Sheet.of(config), agent=row.pruning_agent, version=row.version, own=own, when_full=agents)

    @classmethod
    def posted(cls, data: QueryDict) -> Asked:
        slug, version = data.get("pruning_agent", ""), data.get("version", "")
        agent = Agent.objects.filter(slug=slug, is_direct=False).first() if slug else None
        number, own = int(version) if version.isdecimal() else 0, read_agents(data.get("agents", ""))
        first = {slug: data.get(f"{WHEN_FULL}.{slug}", "") for slug in when_full()}
        chosen = {slug: one for slug, one in first.items() if one in WhenFull.values}
        return cls(sheet=Sheet.posted(data), agent=agent, version=number, own=own, when_full=chosen)

    @property
    def own_as_yaml(self) -> str:
        return yaml.safe_dump({AGENTS: {slug: json.loads(own or "{}") for slug, own in self.own.items()}})

    def after(self, action: str, added: str) -> Asked:
        then = self.sheet.after(action, added)
        return replace(self, sheet=then, focus=_focus(action, self.sheet, then))

    def on_newest(self) -> Asked:
        return replace(self, version=context_settings().version)


def _focus(action: str, before: Sheet, then: Sheet) -> str:
    """A strategy that is moved keeps the focus; a row that is new gets it; one that is gone gives it to its list."""
    name, _, place = action.partition(":")
    if name in {"up", "down"} and place.isdecimal() and int(place) < len(before.chain):
        return f"chain-{name}-{before.chain[int(place)]}"
    if name == "llm-add":
        return id_of(f"{LLMS}[{then.rows(LLMS)[-1]}].type")
    if name == "tool-add":
        return id_of(f"{TOOLS}[{then.rows(TOOLS)[-1]}].tool")
    lists = {"llm-remove": "llm-add", "tool-remove": "tool-add", "drop": "chain-addable", "chain-add": "chain-addable"}
    return lists.get(name, "")


def context_of(asked: Asked, *, errors: Mapping[str, str], page: str) -> dict[str, Any]:
    row, drawing = context_settings(), Drawing(asked.sheet, errors)
    return {
        "asked": asked,
        "errors": errors,
        "focus": id_of(next(iter(errors))) if errors else asked.focus,
        "agents": pruning_agents(asked.agent),
        "pruning_problem": pruning_problem(row),
        "remarks": list(odd_limits(config_of(row.values))),
        "limits": drawing.group(LIMITS),
        "how": drawing.group(HOW),
        "lm_studio": drawing.group(LM_STUDIO),
        "aims": drawing.group(AIMS),
        "recovery": drawing.group(RECOVERY),
        "learning": drawing.group(LEARNING),
        "retries": drawing.group(RETRIES),
        "llms": list(drawing.llms()),
        "own_agents": agents_with_own_settings(),
        "when_full": _agents_when_full(asked),
        "tools": list(drawing.tools()),
        "chain": list(drawing.chain()),
        "chain_error": errors.get(CHAIN, ""),
        "addable": [(name, words) for name, words in STRATEGIES.items() if name not in {FIRST, *asked.sheet.chain}],
        "parameters": [drawing.section(group) for group in PARAMETERS],
        "unsaved": list(_unsaved(asked, row)),
        "changes": changes_page(page),
        "ceilings": list(ceilings()),
    }


def _agents_when_full(asked: Asked) -> list[tuple[str, str, str]]:
    """(short name, name, what comes first) of each agent."""
    agents = Agent.objects.filter(is_direct=False).order_by("name")
    return [(one.slug, one.name, asked.when_full.get(one.slug, one.when_full)) for one in agents]


def _unsaved(asked: Asked, row: ContextSettings) -> Iterator[tuple[str, str, str]]:
    """What saving would change, as far as it can be told."""
    config = check(asked.sheet).config
    if config:
        yield from changes(config_of(row.values), config)
    yield from own_changes(asked.own)
    yield from when_full_changes(asked.when_full)
    now, then = row.pruning_agent, asked.agent
    if now != then:
        yield PRUNING_AGENT, now.slug if now else "", then.slug if then else ""
