"""The settings page as a whole: what somebody has before them, and everything that is drawn of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import yaml
from django.http import QueryDict

from dialogs.context_settings.checking import check
from dialogs.context_settings.drawing import FIRST, STRATEGIES, Drawing, id_of
from dialogs.context_settings.fields import AIMS, HOW, LEARNING, LIMITS, LM_STUDIO, PARAMETERS, RECOVERY, RETRIES
from dialogs.context_settings.importing import read_agents
from dialogs.context_settings.remarks import odd_limits, pruning_problem
from dialogs.context_settings.sheet import CHAIN, LLMS, TOOLS, Sheet
from dialogs.models import Agent
from dialogs.selectors.context_settings import (
    PRUNING_AGENT,
    agents_with_own_settings,
    ceilings,
    changes_page,
    pruning_agents,
)
from dialogs.services.context_settings import changes, own_changes
from health.compaction.config import ContextConfig
from health.compaction.configuration import AGENTS
from health.configured import config_of, context_config, context_settings
from health.models import ContextSettings


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What somebody has before them: texts, the agent that prunes, and the version that they began with."""

    sheet: Sheet
    agent: Agent | None
    version: int
    # What a file gives agents of their own, by their short names, until it is saved.
    own: Mapping[str, str] = field(default_factory=dict)
    # The id of the element that a button leads to: rows come and go, and the keyboard must not be lost with them.
    focus: str = ""

    @classmethod
    def stored(cls) -> Asked:
        return cls.of(context_config())

    @classmethod
    def of(cls, config: ContextConfig, own: Mapping[str, str] = MappingProxyType({})) -> Asked:
        """These settings, with the pruning agent that is chosen now: it stands in no file."""
        row = context_settings()
        return cls(sheet=Sheet.of(config), agent=row.pruning_agent, version=row.version, own=own)

    @classmethod
    def posted(cls, data: QueryDict) -> Asked:
        slug, version = data.get("pruning_agent", ""), data.get("version", "")
        agent = Agent.objects.filter(slug=slug, is_direct=False).first() if slug else None
        number, own = int(version) if version.isdecimal() else 0, read_agents(data.get("agents", ""))
        return cls(sheet=Sheet.posted(data), agent=agent, version=number, own=own)

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
        "tools": list(drawing.tools()),
        "chain": list(drawing.chain()),
        "chain_error": errors.get(CHAIN, ""),
        "addable": [(name, words) for name, words in STRATEGIES.items() if name not in {FIRST, *asked.sheet.chain}],
        "parameters": [drawing.section(group) for group in PARAMETERS],
        "unsaved": list(_unsaved(asked, row)),
        "changes": changes_page(page),
        "ceilings": list(ceilings()),
    }


def _unsaved(asked: Asked, row: ContextSettings) -> Iterator[tuple[str, str, str]]:
    """What saving would change, as far as it can be told."""
    config = check(asked.sheet).config
    if config:
        yield from changes(config_of(row.values), config)
    yield from own_changes(asked.own)
    now, then = row.pruning_agent, asked.agent
    if now != then:
        yield PRUNING_AGENT, now.slug if now else "", then.slug if then else ""
