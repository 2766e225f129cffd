"""Words for events and strategies, stored as codes and names."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from dialogs.compaction.reads.compaction_phases import PHASES
from health.models import ContextEvent

register = template.Library()
SELECTED = mark_safe(" selected")
LABELS = dict(ContextEvent.Code.choices)


@register.filter
def event_label(code: str) -> str:
    return str(LABELS.get(code, code))


@register.filter
def strategy_label(name: str) -> str:
    return str(PHASES[name].label) if name in PHASES else name


@register.simple_tag
def options(choices: Iterable[tuple[int, str]], chosen: int) -> SafeString:
    """The options of a select: in one go, for hundreds of agents would else be a third of the page's time."""
    rows = ((key, SELECTED if key == chosen else "", label) for key, label in choices)
    return format_html_join("", '<option value="{}"{}>{}</option>', rows)
