"""Saving the compaction settings: what is in force, what the trail says, and who is too late."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User

from dialogs.compaction.reads.compaction_rows import phase
from dialogs.compaction.settings.fields import FIELDS, value_at
from dialogs.compaction.writes.context_settings import changes, flat, save_settings
from dialogs.models import Agent
from health.compaction.config import ContextConfig, LlmLimit
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import KEYS
from health.models import ContextSettings, SettingsChange

DEFAULTS = ContextConfig()


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
