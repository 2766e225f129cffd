"""Markdown to safe HTML, block by block; and templates whose HTML is cached by their values.

Pure, except for the language of a button's label. Answers of models are not trusted: raw HTML is off, images are not
loaded, and the sanitiser's allow-list is applied to everything. Finished blocks are rendered once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from sys import getsizeof
from time import monotonic
from typing import Any

import nh3
import pygments
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments.formatters import HtmlFormatter
from pygments.lexer import DelegatingLexer, Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from dialogs.common.bounded import BoundedCache

# A fence may be the first line of a list item.
FENCE = re.compile(r"^(?P<lead>(?:\s|[-+*]\s|\d{1,9}[.)]\s)*)(?P<mark>`{3,}|~{3,})(?P<rest>.*)$")
# A number alone may be the beginning of "1.".
LIST_ITEM = re.compile(r"^ {0,3}(?:(?:[-+*]|\d{1,9}[.)])(?:\s|$)|\d{1,9}$)")
INDENTED = re.compile(r"^(?: {2,}|\t)")
# Larger blocks are shown as plain text, since the time to parse Markdown is not linear.
PLAIN_ABOVE = 30_000
PLAIN_CODE_ABOVE = 300_000
# Larger ones are rendered anew each time. Of those that are kept, with their HTML, so many bytes; a page of a hundred
# messages has some 200 KB.
KEPT_BELOW, MOST_BYTES = 20_000, 8 * 1024 * 1024
# A lexer's single match over a long line can take minutes, and nothing can interrupt it: such code has no colours.
HIGHLIGHT_BELOW = 20_000
HIGHLIGHT_LINE_BELOW = 1_000
# Highlighting stops after so many seconds, between two matches of the lexer.
HIGHLIGHT_SECONDS = 0.5
CLASSES = frozenset({"class"})
ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("p", "br", "hr", "em", "strong", "s", "del", "blockquote", "ul", "li", "pre", "table", "thead", "tbody", "tr"),
        frozenset(),
    ),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), frozenset()),
    **dict.fromkeys(("code", "span", "div", "th", "td"), CLASSES),
    "ol": frozenset({"start"}),
    "a": frozenset({"href", "title"}),
    "button": frozenset({"type", "class", "data-copy", "aria-label"}),
}
ALIGNMENTS = {"text-align:left": "start", "text-align:right": "end", "text-align:center": "center"}
# A page has half a dozen of them; one with a long history is 30 KB.
KEPT = 256
_BLOCKS: BoundedCache[tuple[str, str], SafeString] = BoundedCache(MOST_BYTES)


def split_blocks(text: str) -> list[str]:
    """The top-level blocks of a Markdown text. Appending to the text changes the last block only."""
    return list(blocks_of(text)[0])


@lru_cache(maxsize=64)
def blocks_of(text: str) -> tuple[tuple[str, ...], int]:
    """The blocks, and the character at which the last of them begins."""
    blocks: list[list[str]] = []
    fence = ""
    gap, in_list = True, False
    begins = at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if not fence and not line.strip():
            gap = True
            continue
        starts = not fence and gap and not (blocks and _continues(blocks[-1][0], line, in_list=in_list))
        if starts:
            blocks.append([])
            begins, in_list = start, False
        elif gap and not fence:
            blocks[-1].append("")
        blocks[-1].append(line)
        gap = False
        in_list = in_list or (not fence and bool(LIST_ITEM.match(line)))
        fence = _fence_after(line, fence)
    return tuple("\n".join(lines) for lines in blocks), begins


def _continues(first: str, line: str, *, in_list: bool) -> bool:
    """After a blank line: does this line still belong to the block that began with `first`?

    What half of a line does not do, the whole line must not do either: blocks would move while streaming.
    """
    if in_list:
        return bool(INDENTED.match(line) or LIST_ITEM.match(line))
    return first.startswith("    ") and line.startswith("    ")


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after this line, as deep as it was indented; "" for none."""
    found = FENCE.match(line)
    if not found:
        return fence
    lead, mark, rest = found["lead"], found["mark"], found["rest"].strip()
    depth = len(lead.expandtabs(4))
    if not fence:
        return "" if mark[0] == "`" and "`" in rest else " " * depth + mark
    opened = fence.lstrip()
    is_content = rest or lead.strip() or depth >= len(fence) - len(opened) + 4
    return "" if mark.startswith(opened) and not is_content else fence


def render_markdown(text: str) -> SafeString:
    """A whole text, every block in a <div class="block">."""
    blocks = "".join(f'<div class="block">{render_block(block)}</div>' for block in split_blocks(text))
    return mark_safe(blocks)  # noqa: S308  each block is sanitised


def render_block(block: str) -> SafeString:
    if len(block) > (PLAIN_CODE_ABOVE if FENCE.match(block[:200].split("\n")[0]) else PLAIN_ABOVE):
        return mark_safe(f'<pre class="plain">{escape(block)}</pre>')  # noqa: S308  escaped
    # A code block's button is labelled in the language.
    key = block, get_language() or ""
    html = _BLOCKS.get(key) or _render(block)
    if len(block) <= KEPT_BELOW:
        _BLOCKS.keep(key, html, size=getsizeof(block) + getsizeof(html))
    return html


def _render(block: str) -> SafeString:
    html = nh3.clean(
        MARKDOWN.render(block),
        tags=set(ALLOWED),
        attributes={tag: set(names) for tag, names in ALLOWED.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308  sanitised


class Renderer(RendererHTML):
    """markdown-it's HTML, with our code blocks, no images, and classes where it writes styles."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        name = token.info.split()[0] if token.info.split() else ""
        return _code(token.content, name)

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _code(tokens[idx].content, "")

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """A link to the image: loading it would tell its server that somebody reads this."""
        address = str(tokens[idx].attrGet("src") or "")
        words = escape(tokens[idx].content or address)
        in_link = sum(token.nesting for token in tokens[:idx] if token.type in {"link_open", "link_close"}) > 0
        return words if in_link else f'<a href="{escape(address)}">{words}</a>'

    def th_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _cell(tokens[idx])

    td_open = th_open


def _cell(token: Token) -> str:
    side = ALIGNMENTS.get(str(token.attrGet("style")), "")
    return f'<{token.tag} class="align-{side}">' if side else f"<{token.tag}>"


def _code(source: str, name: str) -> str:
    label = escape(_("Copy code"))
    button = f'<button type="button" class="copy" data-copy="code" aria-label="{label}">{escape(_("Copy"))}</button>'
    head = f'<div class="code-head"><span>{escape(name)}</span>{button}</div>'
    return f'<div class="code">{head}<pre><code class="highlight">{_highlighted(source, name)}</code></pre></div>\n'


def _highlighted(source: str, name: str) -> str:
    """Highlighted, unless no lexer knows the language or it could take too long."""
    lexer = _lexer(name) if _is_short(source) else None
    if lexer is None:
        return escape(source)
    try:
        return pygments.format(_in_time(lexer.get_tokens(source)), HtmlFormatter(nowrap=True))
    except TimeoutError:
        return escape(source)


def _is_short(source: str) -> bool:
    return len(source) < HIGHLIGHT_BELOW and all(len(line) < HIGHLIGHT_LINE_BELOW for line in source.split("\n"))


def _lexer(name: str) -> Lexer | None:
    """None for unknown languages, and for lexers that read all of the code before their first token: no time limit
    could stop those."""
    try:
        lexer = get_lexer_by_name(name, stripnl=False)
    except ClassNotFound:
        return None
    return None if isinstance(lexer, DelegatingLexer) else lexer


def _in_time(tokens: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, str]]:
    end = monotonic() + HIGHLIGHT_SECONDS
    for token in tokens:
        if monotonic() > end:
            raise TimeoutError
        yield token


MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable(["table", "strikethrough"])


def made_once(template: str, **values: Hashable) -> SafeString:
    """The template gets only these values, and its HTML is cached: no form with a CSRF token may be in it."""
    return _made(template, get_language(), tuple(values.items()))


@lru_cache(maxsize=KEPT)
def _made(template: str, language: str | None, values: tuple[tuple[str, Hashable], ...]) -> SafeString:
    """`language` is part of the cache's key."""
    return render_to_string(template, dict(values))
