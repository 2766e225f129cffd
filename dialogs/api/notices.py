"""What a client is told while its conversation is compacted, and how it is taken out again where it comes back. PURE.

The words are those of the LM Studio document. As content they stand in lines of their own, so that they can be known.
"""

from __future__ import annotations

import re

COMPACTING = "Compacting conversation history..."
COMPACTED = "Context compacted, continuing..."
NOT_COMPACTED = "The context could not be made smaller, continuing..."
FULL = "The answer was ended: the context is full."

# Word for word, and only with their mark: a model may have said much the same.
_LINE = re.compile(
    r"^> (?:{}|{}(?: \(≈[\d.]+k? → ≈[\d.]+k? tokens\))?)[ \t]*(?:\n|\Z)\n?".format(
        "|".join(map(re.escape, (COMPACTING, NOT_COMPACTED, FULL))), re.escape(COMPACTED)
    ),
    re.MULTILINE,
)


def compacted(before: int | None, after: int | None) -> str:
    """With the estimates, where they are known: "Context compacted, continuing... (≈12.4k → ≈4.9k tokens)"."""
    if before is None or after is None:
        return COMPACTED
    return f"{COMPACTED} (≈{_short(before)} → ≈{_short(after)} tokens)"


def as_content(words: str) -> str:
    """The notice as lines of the answer."""
    return f"> {words}\n\n"


def without_notices(text: str) -> str:
    """The text as the model wrote it."""
    return _LINE.sub("", text)


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
