"""Text as every database takes it. Pure."""

from __future__ import annotations

import re

# PostgreSQL refuses NUL, and UTF-8 refuses halves of surrogate pairs, which JSON escapes can smuggle in.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates replaced by signs that can be seen."""
    return UNSTORABLE.sub(lambda match: "\u2400" if match[0] == "\0" else "\ufffd", text)
