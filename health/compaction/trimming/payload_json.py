"""Trimming of JSON: keys and structure stay, long arrays keep their ends and whatever differs, strings are cut.

Elements that tell of an error, or whose status is not that of most, are never left out. The result is JSON again;
numbers are written as they were read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from health.compaction.config import PayloadLimits
from health.compaction.reading.importance import mentions_error
from health.compaction.trimming.payload_text import LEFT_OUT, clip, words_of

STATUS_KEYS = frozenset(
    {"status", "state", "level", "severity", "ok", "success", "failed", "result", "outcome", "conclusion", "exit_code"}
)
# A status is something that most share: what is different nearly everywhere is no status.
_COMMON = 0.5
_SIGNAL_CHARS = 2_000
# Arrays may nest: each level looks so deep and no deeper, which keeps the whole linear.
_DEPTH = 5
_ERROR_KEYS = frozenset({"error", "errors", "exception"})
_SURROGATE = re.compile("[\ud800-\udfff]")

Shorten = Callable[[str], str]


class Number(str):
    """A JSON number in its own digits: 1.10 stays 1.10, and 0.1234567890123456789 loses nothing."""

    __slots__ = ()


def looks_like_json(content: str) -> bool:
    return content.lstrip()[:1] in ("{", "[") and content.rstrip()[-1:] in ("}", "]")


def parse(text: str) -> Any:
    """The value. Raises ValueError on what is not JSON or repeats a key, RecursionError on a nest too deep."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice: one of its values would be lost")
    return value


def written(value: Any, *, colon: str = ": ") -> str:
    """JSON on one line. `colon` ": " puts a blank after each comma too."""
    comma = ", " if colon == ": " else ","
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{_quoted(key)}{colon}{written(item, colon=colon)}" for key, item in value.items())
        return "{" + comma.join(pairs) + "}"
    if isinstance(value, list):
        return "[" + comma.join(written(item, colon=colon) for item in value) + "]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    """Half a character pair cannot be sent as UTF-8: it stays an escape."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(text) else text


def trim_json(text: str, limits: PayloadLimits, keep: frozenset[str] = frozenset(), cut: Shorten | None = None) -> str:
    """The text trimmed; `cut` shortens its strings. Raises as `parse` does."""
    trimmer = _Trimmer(limits, keep, cut or (lambda string: clip(string, limits.max_text_chars)))
    return written(trimmer.value(parse(text)), colon=": " if '": ' in text else ":")


class _Trimmer:
    """What every level of one value is trimmed by."""

    def __init__(self, limits: PayloadLimits, keep: frozenset[str], cut: Shorten) -> None:
        self.limits, self.keep, self.cut = limits, keep, cut

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._map(value)
        if isinstance(value, list):
            return self._array(value)
        return self.cut(value) if isinstance(value, str) and not isinstance(value, Number) else value

    def _array(self, items: list[Any]) -> list[Any]:
        kept = self._kept(items, self.limits.array_head + self.limits.array_tail)
        trimmed: list[Any] = []
        for start, run in _runs(kept):
            if kept[start] or run == 1:
                trimmed += [self.value(item) for item in items[start : start + run]]
            else:
                trimmed.append(f"[… {run} of {len(items)} items{LEFT_OUT}")
        return trimmed

    def _map(self, value: dict[str, Any]) -> dict[str, Any]:
        """A record keeps all its keys; a long map of records is cut like an array."""
        keys = list(value)
        kept = self._kept(list(value.values()), self.limits.map_keys, names=keys)
        trimmed: dict[str, Any] = {}
        for start, run in _runs(kept):
            if kept[start] or run == 1:
                trimmed |= {key: self.value(value[key]) for key in keys[start : start + run]}
            else:
                trimmed[f"[… {run} of {len(keys)} keys from {keys[start][:80]}{LEFT_OUT}"] = None
        return trimmed

    def _kept(self, items: Sequence[Any], most: int, names: Sequence[str] = ()) -> list[bool]:
        """Targets of head, tail, and of what differs; all of them if they are not more than `most`."""
        if len(items) <= most:
            return [True] * len(items)
        head, end = most - self.limits.array_tail, len(items) - self.limits.array_tail
        differs = _differing(items)
        return [
            at < head or at >= end or differs[at] or self._is_named(item, names[at] if names else "")
            for at, item in enumerate(items)
        ]

    def _is_named(self, item: Any, name: str) -> bool:
        if not self.keep:
            return False
        return any(not self.keep.isdisjoint(words_of(text)) for text in (name, *_texts(item)))


def _runs(marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Start and length of each run of equal marks."""
    start = 0
    for _, run in groupby(marks):
        length = sum(1 for _ in run)
        yield start, length
        start += length


def _differing(items: Sequence[Any]) -> list[bool]:
    """Elements that hold an error, or a status that is not the common one. Where most differ, none stands out."""
    common = _common_statuses(items)
    differs = [
        any(value != common[key] for key, value in _statuses(item) if key in common) or _holds_error(item)
        for item in items
    ]
    return differs if sum(differs) <= _COMMON * len(items) else [False] * len(items)


def _common_statuses(items: Sequence[Any]) -> dict[str, str]:
    """The value of each status key that most elements share."""
    values: dict[str, Counter[str]] = {}
    for item in items:
        for key, value in _statuses(item):
            values.setdefault(key, Counter())[value] += 1
    commonest = {key: counter.most_common(1)[0] for key, counter in values.items()}
    return {key: value for key, (value, count) in commonest.items() if count > _COMMON * values[key].total()}


def _statuses(item: Any) -> list[tuple[str, str]]:
    if not isinstance(item, dict):
        return []
    return [(k, str(v)) for k, v in item.items() if k.lower() in STATUS_KEYS and not isinstance(v, dict | list)]


def _holds_error(item: Any) -> bool:
    if isinstance(item, Number) or item is None or isinstance(item, bool):
        return False
    if isinstance(item, dict) and any(v and v != "0" for k, v in item.items() if k.lower() in _ERROR_KEYS):
        return True
    return mentions_error("\n".join(text[:_SIGNAL_CHARS] for text in _texts(item)))


def _texts(item: Any, depth: int = 0) -> Iterator[str]:
    """The strings and numbers of a value; not deeper than where a reader would still see what it is about."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict | list) and depth < _DEPTH:
        for inner in item.values() if isinstance(item, dict) else item:
            yield from _texts(inner, depth + 1)
