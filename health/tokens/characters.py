"""Tokens guessed from characters alone: where no vocabulary can be had, and where just that is asked for.

`rough` knows scripts, as a quarter of the characters is far too little for Chinese (310 characters are up to
400 tokens). It guesses high: what it is for is not to overflow.
"""

from __future__ import annotations

import math

# By a character's bytes in UTF-8, which follow its script: Latin; Greek to Arabic; Indic, Chinese to Korean; emoji.
_LETTER, _OTHER_ASCII, _TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0.23, 0.75, 0.55, 1.3, 2.5
_LETTERS = b" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NOT_TWO, _NOT_THREE, _NOT_FOUR = (
    bytes(set(range(256)) - set(lead)) for lead in (range(0xC0, 0xE0), range(0xE0, 0xF0), range(0xF0, 0x100))
)


def rough(text: str) -> int:
    """About how many tokens a text is, whatever the model. Linear in its length."""
    raw = text.encode(errors="replace")
    ascii_only = raw.translate(None, bytes(range(0x80, 0x100)))
    others = len(ascii_only.translate(None, _LETTERS))
    return math.ceil(
        _LETTER * (len(ascii_only) - others)
        + _OTHER_ASCII * others
        + _TWO_BYTES * len(raw.translate(None, _NOT_TWO))
        + _THREE_BYTES * len(raw.translate(None, _NOT_THREE))
        + _FOUR_BYTES * len(raw.translate(None, _NOT_FOUR))
    )
