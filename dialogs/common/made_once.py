"""HTML of values, made once in a process: the same values give the same."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

# A page has half a dozen of them; one with a long history is 30 KB.
KEPT = 256


def made_once(template: str, **values: Hashable) -> SafeString:
    """The template knows these values and nothing else: no form may be in it, for that is a person's."""
    return _made(template, get_language(), tuple(values.items()))


@lru_cache(maxsize=KEPT)
def _made(template: str, language: str | None, values: tuple[tuple[str, Hashable], ...]) -> SafeString:
    """`language` is here for the cache."""
    return render_to_string(template, dict(values))
