"""Words for events and strategies, stored as codes and names."""

from __future__ import annotations

from django import template

from dialogs.selectors.compaction_phases import PHASES
from health.models import ContextEvent

register = template.Library()
LABELS = dict(ContextEvent.Code.choices)


@register.filter
def event_label(code: str) -> str:
    return str(LABELS.get(code, code))


@register.filter
def strategy_label(name: str) -> str:
    return str(PHASES[name].label) if name in PHASES else name
