"""Changing the compaction settings: all keys at once, one line in the audit trail for each that changed. Also how a
person wants to see compactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import yaml
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.compaction.reads.context_settings import PRUNING_AGENT, lost_pruning_agent
from dialogs.compaction.settings.fields import joined
from dialogs.models import Agent, CompactionDisplay
from dialogs.models.agent import WhenFull
from health.compaction.config import ContextConfig
from health.compaction.terms import configuration
from health.compaction.terms.configuration import ROOT
from health.configured import ONLY, config_of
from health.models import ContextSettings, SettingsChange

MOST_KEY_CHARS = 120


class SettingsOutdated(DialogError):
    """Somebody else saved since these settings were read."""


@transaction.atomic
def save_settings(
    *,
    config: ContextConfig,
    pruning_agent: Agent | None,
    by: User | None,
    version: int,
    own: Mapping[str, str] = MappingProxyType({}),
    when_full: Mapping[str, str] = MappingProxyType({}),
) -> list[SettingsChange]:
    """Put these settings into force, and say what changed. Raises SettingsOutdated unless `version` is the newest.

    `own` are settings that agents have of their own, by their short names, and `when_full` what comes first when their
    contexts fill; those that are not named keep theirs.
    """
    row, _is_new = ContextSettings.objects.get_or_create(pk=ONLY)
    changed = list(changes(config_of(row.values), config))
    agents = (lost_pruning_agent(row) or _name(row.pruning_agent), _name(pruning_agent))
    if agents[0] != agents[1]:
        changed.append((PRUNING_AGENT, *agents))
    changed += [*changes_of_agents("own_settings", own), *changes_of_agents("when_full", when_full)]
    written = ContextSettings.objects.filter(pk=ONLY, version=version).update(
        values=configuration.dump(config), pruning_agent=pruning_agent, version=version + (1 if changed else 0)
    )
    if not written:
        raise SettingsOutdated(_("Somebody saved other settings meanwhile."))
    for slug, settings in own.items():
        Agent.objects.filter(slug=slug).update(own_settings=settings)
    for slug, first in when_full.items():
        Agent.objects.filter(slug=slug).update(when_full=WhenFull(first))
    rows = (
        SettingsChange(changed_by=by, key=key[:MOST_KEY_CHARS], before=before, after=after)
        for key, before, after in changed
    )
    return SettingsChange.objects.bulk_create(rows)


@transaction.atomic
def note_changes(*, before: Agent, now: Agent, by: User | None) -> None:
    """An agent was saved on a page of its own: who has everybody's settings open, where the same stands, is behind."""
    values = [(name, getattr(before, name), getattr(now, name)) for name in ("own_settings", "when_full")]
    rows = [
        SettingsChange(changed_by=by, key=f"agents.{now.slug}.{name}"[:MOST_KEY_CHARS], before=was, after=then)
        for name, was, then in values
        if was != then
    ]
    if rows:
        ContextSettings.objects.get_or_create(pk=ONLY)
        ContextSettings.objects.filter(pk=ONLY).update(version=F("version") + 1)
        SettingsChange.objects.bulk_create(rows)


def changes(before: ContextConfig, after: ContextConfig) -> Iterator[tuple[str, str, str]]:
    """(key, old value, new value) of every key that differs; empty where there is none, as for a row of a list."""
    old, new = flat(before), flat(after)
    for key in old | new:
        if old.get(key) != new.get(key):
            yield key, old.get(key, ""), new.get(key, "")


def changes_of_agents(name: str, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(key, old value, new value) of every agent, by its short name, whose column of that name differs."""
    for slug, before in Agent.objects.filter(slug__in=values).order_by("slug").values_list("slug", name):
        if before != values[slug]:
            yield f"agents.{slug}.{name}", before, values[slug]


def flat(config: ContextConfig) -> dict[str, str]:
    """Every value by its key's path; an LLM type's by its name, the chain as one text."""
    return dict(_flat(yaml.safe_load(configuration.dump(config))[ROOT], ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(one, f"{path}.{key}" if path else str(key))
    elif path == "per_llm":
        for llm in value:
            yield from _flat({key: one for key, one in llm.items() if key != "type"}, f"{path}.{llm['type']}")
    elif isinstance(value, list):
        yield path, joined(value)
    else:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _name(agent: Agent | None) -> str:
    return agent.slug if agent else ""


def set_display(*, user: User, **values: Any) -> CompactionDisplay:
    """Keep how a person wants to see compactions. `CompactionDisplayForm` has checked every value."""
    display, _created = CompactionDisplay.objects.update_or_create(user=user, defaults=values)
    return display
