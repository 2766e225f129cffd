"""The compaction settings in force: what staff have set, else seed 4's numbers."""

from __future__ import annotations

import logging
from functools import lru_cache

from health.compaction import configuration
from health.compaction.config import ContextConfig
from health.models import ContextSettings

logger = logging.getLogger(__name__)
ONLY = 1


def context_settings() -> ContextSettings:
    """The only row, or one that is not stored yet."""
    return ContextSettings.objects.filter(pk=ONLY).first() or ContextSettings(pk=ONLY)


def context_config() -> ContextConfig:
    return config_of(context_settings().values)


@lru_cache(maxsize=32)
def config_of(values: str) -> ContextConfig:
    """Stored values were checked when they were stored; if a later version refuses them, the defaults hold."""
    if not values:
        return ContextConfig()
    try:
        return configuration.load(values, was_stored=True)
    except configuration.InvalidConfig:
        logger.exception("the stored compaction settings are not used")
        return ContextConfig()
