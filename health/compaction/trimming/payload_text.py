"""Trimming of text payloads: encoded blobs become a label, diffs keep their changes, long strings their ends.

Whatever is left out leaves its count. Linear in the text: no pattern here looks twice at a long run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from health.compaction.config import PayloadLimits

# Every note ends so: what bears one was trimmed before, and is not trimmed again.
LEFT_OUT = " left out …]"

_WORD = re.compile(r"\w[\w.-]*")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+", re.M)
# Only where a run begins, so that none is scanned again from its middle.
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}")
_WRAPPED_BLOB = re.compile(r"(?:^[A-Za-z0-9+/]{60,80}\r?\n){4,}(?:[A-Za-z0-9+/]{1,80}={0,2}$)?", re.M)


def without_blobs(text: str) -> str:
    """The text with long base64 runs, on one line or wrapped, replaced by a label that tells their length."""
    return _WRAPPED_BLOB.sub(_labelled, _BLOB.sub(_labelled, text))


def _labelled(match: re.Match[str]) -> str:
    blob = match.group()
    if not _is_encoded(blob):
        return blob
    return f"[… base64, {len(blob.strip())} characters{LEFT_OUT}" + "\n" * blob.endswith("\n")


def _is_encoded(blob: str) -> bool:
    """Letters of both cases and digits, all mixed: not a path, a row of dashes or one long word."""
    seen = set(blob[:400])
    return len(seen) >= 20 and all(any(map(kind, seen)) for kind in (str.isupper, str.islower, str.isdigit))


def looks_like_diff(text: str) -> bool:
    return _HUNK.search(text) is not None and ("\n+" in text or "\n-" in text)


def trim_diff(text: str, limits: PayloadLimits) -> str:
    """Every changed line and every head word for word, and few unchanged lines around them."""
    lines = text.splitlines()
    marked = [bool(line) and not line.startswith(" ") for line in lines]
    return told(lines, widened(marked, limits.diff_context_lines), f"[… {{n}} unchanged lines{LEFT_OUT}")


def widened(marked: Sequence[bool], by: int) -> list[bool]:
    """The marks, and `by` places on either side of each."""
    wide = list(marked)
    for step in range(1, by + 1):
        for at, mark in enumerate(marked):
            if mark:
                wide[max(0, at - step)] = wide[min(len(wide) - 1, at + step)] = True
    return wide


def told(lines: Sequence[str], kept: Sequence[bool], note: str) -> str:
    """The lines that are kept, and a note with the count in each gap. A gap of one line is no gap."""
    parts: list[str] = []
    for is_kept, run in groupby(range(len(lines)), key=lambda at: kept[at]):
        gap = [lines[at] for at in run]
        parts += gap if is_kept or len(gap) == 1 else [note.format(n=len(gap))]
    return "\n".join(parts)


def holds(text: str, keep: frozenset[str]) -> bool:
    """Whether one of these words stands in the text."""
    return bool(keep) and not keep.isdisjoint(words_of(text))


def words_of(text: str) -> Iterable[str]:
    """Words with their inner points and dashes: `order-4711`, `v1.2`."""
    return (word.rstrip(".-") for word in _WORD.findall(text))


def words_with(piece: re.Pattern[str], text: str) -> list[str]:
    """Those of its words in which this is found."""
    return [word.rstrip(".-") for word in filter(piece.search, _WORD.findall(text))]


def clip(text: str, max_chars: int) -> str:
    """Head and tail, two to one, with the count of characters between: never longer than `max_chars` or the text."""
    if len(text) <= max_chars:
        return text
    room = max_chars - len(_note(len(text)))
    if room <= 0:
        return text[: max(0, max_chars)]
    tail = room // 3
    return f"{text[: room - tail]}{_note(len(text) - room)}{text[len(text) - tail :]}"


def _note(count: int) -> str:
    return f" [… {count} characters{LEFT_OUT} "
