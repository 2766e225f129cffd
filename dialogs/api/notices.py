"""What a client is told while its conversation is compacted, and how it is taken out again where it comes back. PURE.

The words are those of the LM Studio document. As content they stand in lines of their own, so that they can be known.
"""

from __future__ import annotations

import re

COMPACTING = "Compacting conversation history..."
COMPACTED = "Context compacted, continuing..."
NOT_COMPACTED = "The context could not be made smaller, continuing..."
FULL = "The answer was ended: the context is full."
BREAK = "\n\n"

_SIZES = r" \(≈[\d.]+k? → ≈[\d.]+k? tokens\)"
_NUMBERS = r" \(≈[\d,]+ of [\d,]+ tokens\)"
_WORDS = "|".join(
    (
        re.escape(COMPACTING),
        re.escape(NOT_COMPACTED),
        rf"{re.escape(COMPACTED)}(?:{_SIZES})?",
        rf"{re.escape(FULL)}(?:{_NUMBERS})?",
    )
)
# Only as they are sent, with their mark, breaks and numbers: a model may have said the same words.
_LINE = rf"> (?:{_WORDS})[ \t]*(?:\n\n|\n?\Z)"
_BEFORE = re.compile(rf"\A(?:{_LINE})+")
_AMID = re.compile(rf"\n\n{_LINE}(?:(?:\n\n)?{_LINE})*")


def compacted(before: int | None, after: int | None) -> str:
    """With the estimates, where they are known: "Context compacted, continuing... (≈12.4k → ≈4.9k tokens)"."""
    if before is None or after is None:
        return COMPACTED
    return f"{COMPACTED} (≈{_short(before)} → ≈{_short(after)} tokens)"


def as_content(words: str, *, has_said: bool) -> str:
    """The notice as a paragraph of the answer. `has_said`: after words of the answer, which may break off anywhere."""
    return f"{BREAK if has_said else ''}> {words}{BREAK}"


def as_comment(before: int | None = None, limit: int | None = None) -> bytes:
    """Between events, where every client passes over it, with the estimate and the limit where they are known."""
    sizes = f" ≈{_short(before)} tokens, the limit is {_short(limit)}" if before and limit else ""
    return f": compacting the conversation{sizes}\n\n".encode()


def without_notices(text: str) -> str:
    """The text as the model wrote it."""
    return _AMID.sub("", _BEFORE.sub("", text))


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
