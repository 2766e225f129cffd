"""The compaction settings in force: what staff have set, else the defaults."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from dominds.prepared import prepared
from health.compaction.config import ContextConfig
from health.compaction.terms import configuration
from health.models import ContextSettings

logger = logging.getLogger(__name__)
ONLY = 1


def context_settings() -> ContextSettings:
    """The only row; an unsaved one if there is none yet."""
    return ContextSettings.objects.filter(pk=ONLY).first() or ContextSettings(pk=ONLY)


def _values() -> str:
    """The row's stored values; empty if there is none yet."""
    return next((values for (values,) in _stored()), "")


@prepared()
def _stored() -> QuerySet[ContextSettings, Any]:
    return ContextSettings.objects.filter(pk=ONLY).order_by().values_list("values")


def context_config() -> ContextConfig:
    return config_of(_values())


def config_for(own: str = "", *, llm_type: str = "", base: ContextConfig | None = None) -> ContextConfig:
    """The configuration for an agent with these `own` settings on an LLM of this type: the agent's override the type's,
    which override everybody's. `base` replaces everybody's settings in force."""
    if base is not None:
        return _with_own(base, own, llm_type)
    return _layered(_values(), own, llm_type)


@lru_cache(maxsize=128)
def _layered(values: str, own: str, llm_type: str) -> ContextConfig:
    return _with_own(config_of(values), own, llm_type)


def _with_own(config: ContextConfig, own: str, llm_type: str) -> ContextConfig:
    """The layers were checked when they were stored; one that a later version refuses is left out."""
    types = next((llm.own for llm in config.per_llm if llm.type == llm_type), "") if llm_type else ""
    try:
        return configuration.with_own(config, types, own)
    except (configuration.InvalidConfig, ValueError):
        logger.exception("the settings of an agent or of an LLM type are not used")
        return config


@lru_cache(maxsize=32)
def config_of(values: str) -> ContextConfig:
    """The values were checked when they were stored; if a later version refuses them, the defaults are used."""
    if not values:
        return ContextConfig()
    try:
        return configuration.load(values, was_stored=True)
    except configuration.InvalidConfig:
        logger.exception("the stored compaction settings are not used")
        return ContextConfig()
