"""A circle in words, from the names and numbers that its event holds; in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from health.loops.patterns import Kind


def in_words(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each sign that was seen, and one where the context was too much meanwhile."""
    said = tuple(_said(seen) for seen in facts.get("seen", ()))
    return (*said, _("The context was over its limit meanwhile.")) if facts.get("over_hits") else said


def _said(seen: Mapping[str, Any]) -> str:
    count, numbers = seen["count"], seen["numbers"]
    match seen["kind"]:
        case Kind.CALLS:
            words = _("%(tool)s was called %(count)s times with the same arguments and the same result.")
            return words % {"tool": seen["tool"], "count": count}
        case Kind.ERRORS:
            return _("%(tool)s failed %(count)s times with the same error.") % {"tool": seen["tool"], "count": count}
        case Kind.ANSWERS:
            words = _("The last %(count)s answers are %(percent)s %% alike.")
            return words % {"count": count, "percent": numbers[0]}
    words = _("The last %(count)s answers became shorter and shorter: from %(first)s characters to %(last)s.")
    return words % {"count": count, "first": f"{numbers[0]:,}", "last": f"{numbers[1]:,}"}
