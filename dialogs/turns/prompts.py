"""The texts that Dominds itself sends to an agent, from `templates/prompts/<work language>/`. Plain text."""

from __future__ import annotations

from functools import cache
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
    """Render a prompt template, stripped of white space at its ends."""
    source = get_template(f"prompts/{language}/{name}.txt").template.source  # type: ignore[attr-defined]
    return _unescaped(source).render(values).strip()


@cache
def _unescaped(source: str) -> Any:
    """The template without HTML escaping. The cache holds at most the prompt files."""
    return engines["django"].from_string("{% autoescape off %}" + source + "{% endautoescape %}")


def level_word(language: str, level: str) -> str:
    return LEVEL_WORDS[WorkLanguage(language), level]
