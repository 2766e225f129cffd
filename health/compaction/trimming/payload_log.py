"""Trimming of logs: similar lines are told once with a count, and what tells of trouble stays word for word.

Lines are similar when they differ in numbers only. An error, a warning or a traceback stays with its neighbours;
where there is a budget, the rest goes first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum

from health.compaction.config import PayloadLimits
from health.compaction.reading.importance import mentions_error
from health.compaction.reading.text import of_text
from health.compaction.trimming.payload_text import LEFT_OUT, clip, holds, told, widened

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
    trimmed = told(lines, kept, NOTE)
    if max_chars is None or len(trimmed) <= max_chars:
        return trimmed
    return clip(told(lines, _affordable(lines, worth, max_chars), _NOTE_OF_OTHERS), max_chars)


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
    """Marks of the lines that fit: what is worth most first, the newer of two alike. Each may leave a gap behind."""
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
