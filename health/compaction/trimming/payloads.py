"""Payload trimming: bulky results of tools made short by what they are. The door to the `payload_*` files.

`trim` never makes a text longer and never raises: what it cannot read it leaves alone. JSON stays JSON, an error
line stays in its log, a changed line in its diff. Plain words and code are not its business.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from health.compaction.config import PayloadLimits
from health.compaction.reading.importance import WEB_TOOL, bare_name, is_ui_tool
from health.compaction.reading.text import of_text
from health.compaction.trimming.payload_json import Number, looks_like_json, parse, trim_json, written
from health.compaction.trimming.payload_text import (
    LEFT_OUT,
    clip,
    looks_like_diff,
    looks_like_log,
    trim_diff,
    trim_log,
    without_blobs,
    words_of,
)

HISTORY_CONFIG = PayloadLimits()
# How often JSON is trimmed to find the limits that fill a room, and the share of it that is near enough.
_TRIES, _NEAR = 6, 0.95
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")


def trim(
    content: str,
    *,
    tool: str = "",
    keep: frozenset[str] = frozenset(),
    max_chars: int | None = None,
    limits: PayloadLimits = HISTORY_CONFIG,
) -> str:
    """A shorter form of a payload, or the content itself.

    `keep`: words whose elements and lines are not left out. `max_chars`: the result is cut to it, last of all
    by leaving out its middle. What was trimmed before is only trimmed again to fit.
    """
    if max_chars is None:
        return content if LEFT_OUT in content else _trimmed(content, tool, keep & _named_in(content), limits)
    trimmed = _in_short(content, tool, keep, limits, max_chars)
    if len(trimmed) > max_chars:
        trimmed = _within(content, max_chars, limits, keep, tool)
    return trimmed if len(trimmed) < len(content) else content


def filled(content: str, *, max_chars: int) -> str:
    """JSON in at most so many characters, with as many elements, and as much of its strings, as these hold."""
    fullest, by = "", 1.0
    for _ in range(_TRIES):
        trimmed = _by_form(content, _scaled(HISTORY_CONFIG, by), frozenset())
        if len(fullest) < len(trimmed) <= max_chars:
            fullest = trimmed
        if _NEAR * max_chars <= len(trimmed) <= max_chars or len(trimmed) >= len(content):
            break
        by *= (1 + _NEAR) / 2 * max_chars / max(1, len(trimmed))
    return fullest or trim(content, max_chars=max_chars)


@of_text
def _named_in(content: str) -> frozenset[str]:
    """All words that may be told from others in it, also those behind an escape such as `\\n`."""
    return frozenset(words_of(content)).union(words_of(_ESCAPE.sub(_unescaped, content)))


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "


@of_text
def _trimmed(content: str, tool: str, keep: frozenset[str], limits: PayloadLimits) -> str:
    return min(content, _in_short(content, tool, keep, limits), key=len)


def _in_short(
    content: str, tool: str, keep: frozenset[str], limits: PayloadLimits, max_chars: int | None = None
) -> str:
    if is_ui_tool(tool):
        return compress_ui(content, tool=tool, limits=limits)
    return _by_form(content, limits, keep, max_chars)


@of_text
def is_json(content: str) -> bool:
    """Whether it is a JSON object or array; a line in brackets is none."""
    if not looks_like_json(content):
        return False
    try:
        parse(content)
    except (ValueError, RecursionError):
        return False
    return True


def _by_form(content: str, limits: PayloadLimits, keep: frozenset[str], max_chars: int | None = None) -> str:
    if looks_like_json(content):
        try:
            return trim_json(content, limits, keep, cut=lambda string: _short_string(string, limits, keep))
        except (ValueError, RecursionError):
            pass  # a log of bracketed lines, or broken JSON: trimmed by its lines, if at all
    content = without_blobs(content)
    if looks_like_diff(content):
        return trim_diff(content, limits)
    return trim_log(content, limits, keep, max_chars) if looks_like_log(content) else content


def _short_string(string: str, limits: PayloadLimits, keep: frozenset[str]) -> str:
    """A string inside JSON: a log or a diff as such, anything else by its ends."""
    if len(string) <= limits.max_text_chars:
        return string
    string = without_blobs(string)
    if looks_like_diff(string):
        string = trim_diff(string, limits)
    elif looks_like_log(string):
        return trim_log(string, limits, keep, limits.max_data_chars)
    return clip(string, limits.max_data_chars if "\n" in string else limits.max_text_chars)


def _within(content: str, max_chars: int, limits: PayloadLimits, keep: frozenset[str], tool: str) -> str:
    """Narrower and narrower, then by the ends alone; what was JSON is then a JSON string. Of a tree of elements as many
    as fit."""
    if is_ui_tool(tool) and (tree := _tree_within(content, max_chars, limits, tool)):
        return tree
    for narrowing in (2, 4, 16):
        narrow = replace(_scaled(limits, 1 / narrowing), array_tail=1)
        if is_ui_tool(tool) and len(ui := compress_ui(content, tool=tool, limits=narrow)) <= max_chars:
            return ui
        trimmed = _by_form(content, narrow, frozenset() if narrowing > 4 else keep, max_chars)
        if len(trimmed) <= max_chars:
            return trimmed
    if not is_json(trimmed):
        return clip(trimmed, max_chars)
    room = max_chars
    while len(quoted := written(clip(trimmed, room))) > max_chars and room > 0:
        room -= len(quoted) - max_chars
    return quoted if len(quoted) <= max_chars else clip(trimmed, max_chars)


def _tree_within(content: str, max_chars: int, limits: PayloadLimits, tool: str) -> str:
    """The tree with as many elements as fit; empty where not even one does."""
    fitting, least, most = "", 1, max(limits.max_ui_nodes, limits.max_web_elements)
    while least <= most:
        nodes = (least + most) // 2
        fewer = replace(limits, max_ui_nodes=nodes, max_web_elements=nodes)
        tree = compress_ui(content, tool=tool, limits=fewer)
        if len(tree) <= max_chars:
            fitting, least = tree, nodes + 1
        else:
            most = nodes - 1
    return fitting


def _scaled(limits: PayloadLimits, by: float) -> PayloadLimits:
    """The limits, so many times as wide."""
    return replace(
        limits,
        max_text_chars=int(limits.max_text_chars * by),
        max_data_chars=int(limits.max_data_chars * by),
        array_head=max(1, int(limits.array_head * by)),
        array_tail=max(1, int(limits.array_tail * by)),
        map_keys=max(4, int(limits.map_keys * by)),
        max_ui_nodes=max(1, int(limits.max_ui_nodes * by)),
        max_ui_children=max(1, int(limits.max_ui_children * by)),
        max_web_elements=max(1, int(limits.max_web_elements * by)),
    )


REDUNDANT = frozenset({"description", "help"})
# Lists of nodes that stand inside a node and are no children of it: each window has its elements.
LISTS_OF_NODES = frozenset({"elements", "nodes", "windows"})
MARK = "[truncated]"
_DATA_KEYS = frozenset({"data", "base64", "image", "screenshot", "attributes", "raw", "html", "dump"})
_DATA = re.compile(r"data:[\w.+/-]{1,60}[;,]")


def compress_ui(content: str, *, tool: str, limits: PayloadLimits | None = None) -> str:
    """The result of a UI tool in a short form; of any other tool, or where it fails, the content as it is.

    Depth counts levels of `children`: attributes such as `position` never count. JSON stays JSON; a value that cannot
    be read or cut stays as it was.
    """
    if not is_ui_tool(tool):
        return content
    limits = limits or PayloadLimits()
    most = limits.max_web_elements if bare_name(tool) == WEB_TOOL else limits.max_ui_nodes
    try:
        tree = _Tree(limits, most)
        return written(tree.envelope(parse(content)), colon=": " if '": ' in content else ":")
    except (ValueError, RecursionError):
        return content


class _Tree:
    """One result on its way down. `left` counts the nodes that may still be kept, in all its lists together; `extra`
    the children that may be kept beyond these. A list of which nothing is kept becomes a mark: empty it would lie."""

    def __init__(self, limits: PayloadLimits, most: int) -> None:
        self.limits, self.left, self.extra, self.is_first = limits, most, 0, True

    def envelope(self, value: Any, key: str = "") -> Any:
        """What surrounds the elements: the answer's own keys, down to the first list of elements."""
        if isinstance(value, list):
            return self._first_level(value)
        if isinstance(value, dict) and "children" not in value:
            return {key: self.envelope(item, key) for key, item in value.items() if key not in REDUNDANT}
        return self._node(value, 0) if isinstance(value, dict) else self._attribute(value, key)

    def _first_level(self, elements: list[Any]) -> Any:
        """As many elements as may still be kept. Nodes below fill what these leave, in document order.

        One element's children are let through in any case: the first list of elements keeps 200 elements and the
        first one's 20 children. What follows that list gets none of these.
        """
        kept = elements[: self.left]
        self.left -= len(kept)
        is_first, self.is_first = self.is_first and bool(kept), self.is_first and not kept
        if is_first:
            self.extra = max(0, self.limits.max_ui_children - self.left)
        nodes = [self._node(element, 0) for element in kept]
        if is_first:
            self.extra = 0
        return MARK if elements and not nodes else nodes

    def _node(self, value: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            return self._attribute(value)
        return {key: self._item(key, item, depth) for key, item in value.items() if key not in REDUNDANT}

    def _item(self, key: str, value: Any, depth: int) -> Any:
        if key == "children":
            return self._children(value, depth + 1)
        is_nodes = key in LISTS_OF_NODES and isinstance(value, list) and all(isinstance(one, dict) for one in value)
        return self._first_level(value) if is_nodes else self._attribute(value, key)

    def _children(self, value: Any, depth: int) -> Any:
        if not isinstance(value, list):
            return self._attribute(value)
        if value and depth > self.limits.max_ui_depth:
            return MARK
        kept: list[Any] = []
        for child in value[: self.limits.max_ui_children]:
            if not self._takes_a_child():
                break
            kept.append(self._node(child, depth))
        return MARK if value and not kept else kept

    def _takes_a_child(self) -> bool:
        """Whether one more may be kept; it is counted."""
        if self.left:
            self.left -= 1
        elif self.extra:
            self.extra -= 1
        else:
            return False
        return True

    def _attribute(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._attribute(item, name) for name, item in value.items() if name not in REDUNDANT}
        if isinstance(value, list):
            return [self._attribute(item, key) for item in value]
        if not isinstance(value, str) or isinstance(value, Number):
            return value
        is_data = key in _DATA_KEYS or _DATA.match(value)
        most = self.limits.max_data_chars if is_data else self.limits.max_text_chars
        return value if len(value) <= most else f"{value[:most]}...{MARK}"
