"""Drops what the continuation of a cut answer repeats, so that both read as one text. PURE.

A model that is asked to continue often repeats its last words, and a server with prefill may repeat the whole text.
Only text that may still turn out to be such a repetition is held back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dialogs.providers.base import ArgumentsDelta, ReasoningDelta, StreamEvent, TextDelta

# The most characters of a repetition, unless it is of the whole text.
LOOKED_BACK_CHARS = 4_000
# The least letters of an unfinished word that are recognised: fewer may begin any other word.
LEAST_LETTERS = 3
# What must begin a new line in Markdown.
_BLOCK = re.compile(r"[-*+] |\d+[.)] |#{1,6} |```|\|")
_WORD = re.compile(r"(?<!\w)\w|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DOTS = re.compile(r"\s*+(?:\.\.\.|…)?\s*+")
_ONLY_DOTS = re.compile(r"\s*+(?:\.{0,3}|…)\s*+")
_JOINED_AS_IT_IS = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
_CLOSING, _OPENING = ",.;:!?)]}”’»%", "([{“‘«"


class RepetitionFilter:
    """`said` is the answer so far, `sent` the text that the model continues; None if a message asks it to continue."""

    def __init__(self, said: str, *, sent: str | None = None) -> None:
        self._said, self._by_itself = said, sent is not None
        self._told = said.rstrip()
        self._blank = said[len(self._told) :]
        self._repeated = [sent] if sent else _endings(self._told)
        self._held = ""
        self._is_over = False

    def passed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """The event, without repeated text."""
        if isinstance(event, ReasoningDelta | ArgumentsDelta):
            yield event
        elif text := self.add(event.text) if isinstance(event, TextDelta) else self.end():
            yield TextDelta(text)
        if not isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta):
            yield event

    def add(self, text: str) -> str:
        """Add text; returns what is now known to be new."""
        if self._is_over:
            return text
        self._held += text
        if self._is_blank():
            return ""
        held = self._begun()
        self._repeated = [one for one in self._repeated if one.startswith(held) or held.startswith(one)]
        may_repeat = any(len(one) >= len(held) for one in self._repeated)
        return "" if may_repeat else self.end()

    def end(self) -> str:
        """The text that was held back and turned out to be new."""
        if self._is_over:
            return ""
        self._is_over = True
        held = self._begun()
        done = [one for one in self._repeated if held.startswith(one) and self._is_repetition(one, held[len(one) :])]
        if done:
            return self._after_blank(held[len(max(done, key=len)) :])
        if self._by_itself:
            return self._after_blank(held)
        return self._space_before(held) + held

    def _is_blank(self) -> bool:
        """Is all text so far white space, so that it cannot be compared yet?"""
        if self._by_itself:
            return bool(self._blank) and not self._held.strip()
        return bool(_ONLY_DOTS.fullmatch(self._held))

    def _begun(self) -> str:
        return self._held if self._by_itself else self._held[_dots(self._held) :]

    def _is_repetition(self, repeated: str, rest: str) -> bool:
        """Does the text repeat whole words; or a word that was cut in its middle and is complete now?"""
        if self._by_itself or not (rest[:1].isalnum() and repeated[-1:].isalnum()):
            return True
        return bool(_JOINED_AS_IT_IS.match(repeated[-1])) or len(repeated) >= LEAST_LETTERS

    def _after_blank(self, text: str) -> str:
        """The text without white space that was passed already."""
        if not self._blank:
            return text
        return text.removeprefix(self._blank) if text.startswith(self._blank) else text.lstrip(" ")

    def _space_before(self, text: str) -> str:
        if not text or self._blank or not self._said:
            return ""
        lines = self._held[: len(self._held) - len(self._held.lstrip())]
        if "\n" in lines:
            return lines
        if _BLOCK.match(text):
            return "\n"
        last, first = self._said[-1], text[0]
        is_close = first in _CLOSING or last in _OPENING or any(map(_JOINED_AS_IT_IS.match, (last, first)))
        return "" if is_close else " "


def _dots(text: str) -> int:
    found = _DOTS.match(text)
    return found.end() if found else 0


def _endings(text: str) -> list[str]:
    """The whole text, and each of its ends that begins with a word."""
    end = text[-LOOKED_BACK_CHARS:]
    return [text, *(end[found.start() :] for found in _WORD.finditer(end) if len(end) < len(text) or found.start())]
