"""Trimming of text payloads: encoded blobs become a label, diffs keep their changes, long strings their ends; of logs
similar lines are told once with a count.

Lines are similar when they differ in numbers only. An error, a warning or a traceback stays word for word with its
neighbours; where there is a budget, the rest goes first.
Whatever is left out leaves its count. Linear in the text: no pattern here looks twice at a long run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import groupby

from health.compaction.config import PayloadLimits
from health.compaction.reading.importance import mentions_error
from health.compaction.reading.text import of_text

# Every note ends so: what bears one was trimmed before, and is not trimmed again.
LEFT_OUT = " left out …]"

# A template seen so often is told by its first and last line; below that, a note costs more than the lines.
SIMILAR = 4
# So many loud lines of one template stay word for word; a flood of them is told like any repetition.
FLOOD = 25
NOTE = f"[… {{n}} similar lines{LEFT_OUT}"
_NOTE_OF_OTHERS = f"[… {{n}} lines{LEFT_OUT}"
_SAMPLE_CHARS, _SAMPLE_LINES = 60_000, 300
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,64}\b|\d+")
_WARNING = re.compile(r"\b(?:WARN(?:ING)?|[Ww]arning|CRITICAL|ERR)\b|^E  |警告")
_STAMPED = re.compile(
    r"\W{0,3}(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\d{10}"
    r"|(?i:trace|debug|info|notice|warn|warning|error|fatal|critical)\b)"
)
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
    return with_gap_notes(lines, widened(marked, limits.diff_context_lines), f"[… {{n}} unchanged lines{LEFT_OUT}")


def widened(marked: Sequence[bool], by: int) -> list[bool]:
    """The marks, and `by` places on either side of each."""
    wide = list(marked)
    for step in range(1, by + 1):
        for at, mark in enumerate(marked):
            if mark:
                wide[max(0, at - step)] = wide[min(len(wide) - 1, at + step)] = True
    return wide


def with_gap_notes(lines: Sequence[str], kept: Sequence[bool], note: str) -> str:
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


# Logs


class Worth(IntEnum):
    """What a line of a log is worth; the smallest stay longest."""

    TELLING = 0  # loud, at either end, or with a word that is to be kept
    NEIGHBOUR = 1
    RARE = 2
    SIMILAR = 3


def looks_like_log(text: str) -> bool:
    """Lines that mostly begin with a time or a level, or mostly repeat each other but for numbers."""
    lines = [line for line in text[:_SAMPLE_CHARS].splitlines()[:_SAMPLE_LINES] if line.strip()]
    if len(lines) < 2 * SIMILAR:
        return False
    stamped = sum(1 for line in lines if _STAMPED.match(line))
    repeated = sum(count for count in Counter(map(_template, lines)).values() if count >= SIMILAR)
    return 2 * max(stamped, repeated) >= len(lines)


def trim_log(text: str, limits: PayloadLimits, keep: frozenset[str] = frozenset(), max_chars: int | None = None) -> str:
    """Similar lines once, the rest as it stands; within `max_chars`, if given, the lines that are worth most."""
    lines = text.splitlines()
    worth = _worth(text, lines, limits.log_edge_lines, keep)
    kept = [one < Worth.SIMILAR for one in worth]
    lines = [line if len(line) <= limits.max_data_chars else clip(line, limits.max_data_chars) for line in lines]
    trimmed = with_gap_notes(lines, kept, NOTE)
    if max_chars is None or len(trimmed) <= max_chars:
        return trimmed
    return clip(with_gap_notes(lines, _affordable(lines, worth, max_chars), _NOTE_OF_OTHERS), max_chars)


def _worth(text: str, lines: Sequence[str], edge: int, keep: frozenset[str]) -> list[Worth]:
    loud, rare = _looked_at(text)
    near = widened(loud, 1)
    return [
        Worth.TELLING
        if loud[at] or at < edge or at >= len(lines) - edge or holds(line, keep)
        else Worth.NEIGHBOUR
        if near[at]
        else Worth.RARE
        if rare[at]
        else Worth.SIMILAR
        for at, line in enumerate(lines)
    ]


@of_text
def _looked_at(text: str) -> tuple[list[bool], list[bool]]:
    """Its lines that are loud, and those that occur seldom or are the first or last of their sort."""
    lines = text.splitlines()
    templates = [_template(line) for line in lines]
    return _without_floods(_loud(lines), templates), _first_and_last(templates)


def _template(line: str) -> str:
    return _VARYING.sub("#", line[:200].strip())


def _loud(lines: Sequence[str]) -> list[bool]:
    """Lines that tell of an error or warning; a traceback from its first line to the exception that ends it."""
    loud: list[bool] = []
    tracing = False
    for line in lines:
        begins = line.startswith("Traceback (most recent")
        loud.append(begins or tracing or _WARNING.search(line) is not None or mentions_error(line))
        tracing = begins or (tracing and line[:1] in (" ", "\t"))
    return loud


def _without_floods(loud: Sequence[bool], templates: Sequence[str]) -> list[bool]:
    counts = Counter(template for is_loud, template in zip(loud, templates, strict=True) if is_loud)
    return [is_loud and counts[template] <= FLOOD for is_loud, template in zip(loud, templates, strict=True)]


def _first_and_last(templates: Sequence[str]) -> list[bool]:
    """Lines that occur seldom, and of the others the first and the last."""
    counts = Counter(templates)
    last = {template: at for at, template in enumerate(templates)}
    first = {template: at for at, template in reversed(list(enumerate(templates)))}
    return [counts[t] < SIMILAR or at in (first[t], last[t]) for at, t in enumerate(templates)]


def _affordable(lines: Sequence[str], worth: Sequence[Worth], max_chars: int) -> list[bool]:
    """Targets of the lines that fit: what is worth most first, the newer of two alike. Each may leave a gap behind."""
    kept = [False] * len(lines)
    room = max_chars - len(NOTE)
    for at in sorted(range(len(lines)), key=lambda at: (worth[at], -at)):
        if worth[at] is Worth.SIMILAR:
            break
        cost = len(lines[at]) + len(NOTE)
        if cost <= room:
            kept[at] = True
            room -= cost
    return kept
