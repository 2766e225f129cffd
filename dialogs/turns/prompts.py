"""The texts that Dominds itself says to an agent, from `templates/prompts/<work language>/`. Plain text."""

from __future__ import annotations

from typing import Any

from django.template import engines
from django.template.loader import get_template

from dialogs.models.dialog import WorkLanguage

DONE_MARK = "GOAL DONE"
LEVEL_WORDS = {
    (WorkLanguage.ENGLISH, "caution"): "filling up (caution)",
    (WorkLanguage.ENGLISH, "critical"): "nearly full (critical)",
    (WorkLanguage.CHINESE, "caution"): "吃紧",
    (WorkLanguage.CHINESE, "critical"): "告急",
}


def prompt(name: str, /, *, language: str, **values: Any) -> str:
    """One of the texts, filled in and stripped."""
    source = get_template(f"prompts/{language}/{name}.txt").template.source  # type: ignore[attr-defined]
    template = engines["django"].from_string("{% autoescape off %}" + source + "{% endautoescape %}")
    return template.render(values).strip()


def level_word(language: str, level: str) -> str:
    return LEVEL_WORDS[WorkLanguage(language), level]
