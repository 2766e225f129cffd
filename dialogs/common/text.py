"""Text as every database takes it, and sentences in a row as each language has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import get_language

# PostgreSQL refuses NUL, and UTF-8 refuses halves of surrogate pairs, which JSON escapes can smuggle in.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates replaced by signs that can be seen."""
    return UNSTORABLE.sub(lambda match: "\u2400" if match[0] == "\0" else "\ufffd", text)


def blank() -> str:
    """What parts a sentence, or a label, from what follows: in Chinese nothing, as its full stop is wide enough."""
    return "" if (get_language() or "").startswith("zh") else " "


def sentences(parts: Iterable[object]) -> str:
    return blank().join(map(str, parts))
