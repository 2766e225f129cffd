"""Compression of UI data: what `elementsJson` and `webElements` answered, and nothing else.

Depth counts levels of `children`: attributes such as `position` never count. JSON stays JSON; a value that
cannot be read or cut stays as it was.
"""

from __future__ import annotations

import re
from typing import Any

from health.compaction.config import PayloadLimits
from health.compaction.reading.importance import WEB_TOOL, bare_name, is_ui_tool
from health.compaction.trimming.payload_json import Number, parse, written

REDUNDANT = frozenset({"description", "help"})
# Lists of nodes that stand inside a node and are no children of it: each window has its elements.
LISTS_OF_NODES = frozenset({"elements", "nodes", "windows"})
MARK = "[truncated]"
_DATA_KEYS = frozenset({"data", "base64", "image", "screenshot", "attributes", "raw", "html", "dump"})
_DATA = re.compile(r"data:[\w.+/-]{1,60}[;,]")


def compress_ui(content: str, *, tool: str, limits: PayloadLimits | None = None) -> str:
    """The result of a UI tool in a short form; of any other tool, or where it fails, the content as it is."""
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
