"""Saving the compaction settings: what is in force, what the trail says, and who is too late."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from dialogs.compaction.reads.compaction_rows import phase
from dialogs.compaction.settings.fields import FIELDS, value_at
from dialogs.compaction.writes.context_settings import SettingsOutdated, changes, flat, save_settings
from dialogs.models import Agent
from health.compaction.config import ContextConfig, LlmLimit
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import KEYS
from health.configured import context_config, context_settings
from health.models import ContextSettings, SettingsChange

DEFAULTS = ContextConfig()
HIGHER = replace(DEFAULTS, default_limit=6000)


def test_a_save_is_in_force_and_raises_the_version(sam: User) -> None:
    changed = save_settings(config=HIGHER, pruning_agent=None, by=sam, version=1)

    assert context_config() == HIGHER
    assert context_settings().version == 2
    assert [(row.key, row.before, row.after, row.changed_by) for row in changed] == [
        ("default_limit", "5000", "6000", sam)
    ]


def test_a_save_that_changes_nothing_leaves_no_trace(sam: User) -> None:
    assert save_settings(config=DEFAULTS, pruning_agent=None, by=sam, version=1) == []
    assert context_settings().version == 1


def test_who_began_with_older_settings_changes_nothing(sam: User, agent: Agent) -> None:
    save_settings(config=HIGHER, pruning_agent=None, by=sam, version=1)

    with pytest.raises(SettingsOutdated):
        save_settings(config=DEFAULTS, pruning_agent=agent, by=sam, version=1)

    assert context_config() == HIGHER
    assert SettingsChange.objects.count() == 1


def test_an_agent_that_is_chosen_is_named_by_its_slug(sam: User, agent: Agent) -> None:
    save_settings(config=DEFAULTS, pruning_agent=agent, by=sam, version=1)

    assert ContextSettings.objects.get().pruning_agent == agent
    assert list(SettingsChange.objects.values_list("key", "before", "after")) == [("pruning_agent", "", "helper")]


def test_rows_of_a_list_are_named_by_what_they_are() -> None:
    fewer = replace(DEFAULTS, per_llm=(LlmLimit(type="tiny", limit=4000, follow_default=False),), retry_per_tool=())

    found = {key: (before, after) for key, before, after in changes(DEFAULTS, fewer)}

    assert found["per_llm.gpt4.limit"] == ("6000", "")
    assert found["per_llm.tiny.limit"] == ("", "4000")
    assert found["retry_policies.per_tool.askQuestion.max_attempts"] == ("4", "")


def test_every_key_has_a_field_on_the_page() -> None:
    """A key that is added to the configuration and not to the page fails here."""
    rows = ("per_llm.", "retry_policies.per_tool.", "breaking_strategy.chain_order")
    keys = {key for key in flat(DEFAULTS) if not key.startswith(rows)}

    assert set(FIELDS) == keys
    values = (value_at(DEFAULTS, path) for path in FIELDS)
    texts = {", ".join(value) if isinstance(value, tuple) else str(value) for value in values}
    assert texts <= set(flat(DEFAULTS).values())


def test_every_key_is_told_in_the_docs() -> None:
    told = (settings.BASE_DIR / "docs" / "context-settings.md").read_text()

    assert {key for key in KEYS if f"`{key}" not in told} == set()


def test_every_strategy_has_its_words_on_the_settings_page_on_the_card_and_in_details() -> None:
    assert {name for name in REGISTRY if not (phase(name).choice and phase(name).label)} == set()
