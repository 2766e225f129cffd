"""Very long texts in pieces, so that no text is slower per character than another.

A vocabulary's time grows faster than its text where a word never ends. A cut before a word is exact in every
vocabulary; where there is none near, it is made anyway and may cost a token or two in some 10,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE = 32_768  # characters
_REACH = 1_000
# No vocabulary here has a token that goes on from a word into the blank before the next one.
_BEFORE_A_WORD = re.compile(r"(?<=\S) (?=[^\W\d_])")


def pieces(text: str) -> Iterator[str]:
    """The text in order, in pieces of at most `PIECE` characters."""
    start = 0
    while len(text) - start > PIECE:
        end = _border(text, start + PIECE)
        yield text[start:end]
        start = end
    yield text[start:]


def _border(text: str, end: int) -> int:
    """The last cut before a word near `end`, else `end` itself."""
    near = _BEFORE_A_WORD.finditer(text, end - _REACH, end)
    return max((found.start() for found in near), default=end)
