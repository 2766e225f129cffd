"""Words for events, stored as codes."""

from __future__ import annotations

from django import template

from health.models import ContextEvent

register = template.Library()
LABELS = dict(ContextEvent.Code.choices)


@register.filter
def event_label(code: str) -> str:
    return str(LABELS.get(code, code))
