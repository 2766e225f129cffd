"""Everything that is drawn of the settings page: the form, what it would change, and what there is to say about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import yaml
from django.utils.functional import Promise

from dialogs.compaction.reads.compaction_phases import phase
from dialogs.compaction.reads.context_settings import (
    PRUNING_AGENT,
    agents_with_own_settings,
    ceilings,
    changes_page,
    when_full,
)
from dialogs.compaction.settings.checking import odd_limits, pruning_problem
from dialogs.compaction.settings.form import SettingsForm
from dialogs.compaction.settings.inputs import Input
from dialogs.compaction.settings.texts import CHAIN, Texts, texts_of
from dialogs.compaction.writes.context_settings import changes, own_changes, when_full_changes
from health.compaction.config import TRIM, ContextConfig
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import AGENTS, WHEN_FULL
from health.configured import config_of, context_settings

NOTHING: Mapping[str, str] = MappingProxyType({})


def page_texts(config: ContextConfig, own: Mapping[str, str] = NOTHING, first: Mapping[str, str] = NOTHING) -> Texts:
    """The page with these settings, and those that a file gives agents. What stands in no file is as it is now."""
    row = context_settings()
    agents = yaml.safe_dump({AGENTS: {slug: json.loads(one or "{}") for slug, one in own.items()}}) if own else ""
    chosen = {f"{AGENTS}.{slug}.{WHEN_FULL}": one for slug, one in {**when_full(), **first}.items()}
    pruning = row.pruning_agent.slug if row.pruning_agent else ""
    return texts_of(config) | chosen | {"version": row.version, "agents": agents, PRUNING_AGENT: pruning}


def context_of(form: SettingsForm, *, checked: SettingsForm, focus: str, page: str) -> dict[str, Any]:
    """`checked` are the texts that `form` shows, where they were sent: the form itself tells errors only when it is
    asked to save them."""
    if form.wrong:
        # The chain is hidden inputs: its list of strategies has the focus.
        focus = "chain-addable" if form.wrong[0].html_name == CHAIN else form.wrong[0].auto_id
    for one in form.inputs:
        one.field.widget.attrs |= {"autofocus": True} if one.auto_id == focus else {}
    row, chain = context_settings(), form.chain.value() or []
    return {
        "form": form,
        "focus": focus,
        "pruning_problem": pruning_problem(row),
        "remarks": list(odd_limits(config_of(row.values))),
        "own_agents": agents_with_own_settings(),
        "chain": [(name, phase(name).choice) for name in chain],
        "addable": [(name, phase(name).choice) for name in sorted(REGISTRY) if name not in {TRIM, *chain}],
        "strategies": [_section(name, part) for name, part in form.parts.items() if name in REGISTRY],
        "unsaved": list(unsaved(checked)) if checked.is_bound else [],
        "changes": changes_page(page),
        "ceilings": list(ceilings()),
    }


def _section(name: str, fields: list[Input]) -> tuple[str, Promise | str, list[Input], bool]:
    """A strategy with its words and numbers; open where one of them is not the default, or wrong."""
    return name, phase(name).choice, fields, any(one.errors or one.is_set for one in fields)


def unsaved(form: SettingsForm) -> Iterator[tuple[str, str, str]]:
    """What saving would change, as far as it can be told."""
    row = context_settings()
    if form.is_valid() and form.config:
        yield from changes(config_of(row.values), form.config)
    yield from own_changes(form.cleaned_data.get("agents", {}))
    yield from when_full_changes(form.chosen_when_full)
    now, then = row.pruning_agent, form.cleaned_data.get(PRUNING_AGENT)
    if now != then:
        yield PRUNING_AGENT, now.slug if now else "", then.slug if then else ""
