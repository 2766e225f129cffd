"""A browser's page as far as fragments touch it: rows, and the live answer's blocks, by id and in order.

Does to a fragment what htmx does: an element replaces the one with its id, is deleted, or is added at the
end of another. What is on no page is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "input", "meta", "link"})


@dataclass
class Element:
    attributes: dict[str, str | None]
    inner: str = ""


class _TopLevel(HTMLParser):
    """Splits HTML into its outermost elements; what is inside stays as it was written."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Element] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.depth:
            self._inside(self.get_starttag_text() or "")
        else:
            self.found.append(Element(dict(attrs)))
        self.depth += tag not in VOID

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1
        self._inside(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._inside(data)

    def handle_entityref(self, name: str) -> None:
        self._inside(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._inside(f"&#{name};")

    def _inside(self, html: str) -> None:
        if self.depth:
            self.found[-1].inner += html


def elements(html: str) -> list[Element]:
    parser = _TopLevel()
    parser.feed(html)
    parser.close()
    return parser.found


def element(html: str, dom_id: str) -> Element | None:
    """The element with this id, however deep."""
    for found in elements(html):
        if found.attributes.get("id") == dom_id:
            return found
        if inside := element(found.inner, dom_id):
            return inside
    return None


@dataclass
class Page:
    """What a person sees: each row's and each live block's HTML by id."""

    rows: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)

    def apply(self, html: str) -> None:
        for found in elements(html):
            self._swap(found, str(found.attributes.get("id", "")), str(found.attributes.get("hx-swap-oob", "true")))

    def _swap(self, found: Element, dom_id: str, how: str) -> None:
        if how == "delete":
            self.rows.pop(dom_id, None)
            self.blocks.pop(dom_id, None)
            self.blocks = {} if dom_id == "live" else self.blocks
        elif how == "beforeend:#live-blocks":
            self.blocks |= _by_id(found.inner)
        elif how == "beforeend:#rows":
            self._bring(_by_id(found.inner))
        elif dom_id == "transcript":
            rows = element(found.inner, "rows")
            self.rows, self.blocks = {}, {}
            self._bring(_by_id(rows.inner) if rows else {})
        elif dom_id in self.blocks:
            self.blocks[dom_id] = found.inner
        elif dom_id in self.rows:
            self._bring({dom_id: found.inner})

    def _bring(self, rows: dict[str, str]) -> None:
        """Show these rows; a live one brings its blocks."""
        self.rows |= rows
        if "live" in rows:
            blocks = element(rows["live"], "live-blocks")
            self.blocks = _by_id(blocks.inner) if blocks else {}


def _by_id(html: str) -> dict[str, str]:
    return {str(found.attributes["id"]): found.inner for found in elements(html)}
