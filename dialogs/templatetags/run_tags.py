"""How long a run has taken. `static/js/autonomous.js` writes it the same way while the clock ticks."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

register = template.Library()


@register.simple_tag
def time_units() -> str:
    # Translators: day, hour, minute and second as they follow a number; one word each, separated by spaces.
    return _("d h min s")


@register.filter
def lasting(seconds: int) -> str:
    """The two largest units: 260 -> "4 min 20 s"."""
    counts = (seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    parts = [f"{count} {unit}" for count, unit in zip(counts, time_units().split(), strict=False)]
    first = next((at for at, count in enumerate(counts) if count), len(parts) - 1)
    return " ".join(parts[first : first + 2])
