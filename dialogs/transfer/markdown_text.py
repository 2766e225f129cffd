"""Texts of others inside a Markdown file: none can act as a heading, or swallow what follows. PURE."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

SENTINEL = "dominds-end-of-message"
# HTML on, because a reader's Markdown program may take it: an open comment would swallow what follows.
parser = MarkdownIt("commonmark", {"html": True})


def one_line(text: str) -> str:
    """For headings: no line ends, and no sign that Markdown would act on."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))


def contained(text: str) -> str:
    """The text, closed so that none of it can swallow what follows: an open fence gets its end.

    Whatever else stays open, such as an HTML comment, is shown as plain text in a fence of its own.
    """
    text = text.rstrip()
    if _is_closed(text):
        return text
    fence = _open_fence(text)
    if fence and _is_closed(f"{text}\n{fence}"):
        return f"{text}\n{fence}"
    return fenced(text, "text")


def fenced(text: str, kind: str) -> str:
    """The text in a fence that is longer than any inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    wall = "`" * max(3, longest + 1)
    return f"{wall}{kind}\n{text.rstrip()}\n{wall}"


def _is_closed(text: str) -> bool:
    """Whether a paragraph written after the text is still a paragraph of its own."""
    tokens = parser.parse(f"{text}\n\n{SENTINEL}")
    return tokens[-1].type == "paragraph_close" and tokens[-1].level == 0 and tokens[-2].content == SENTINEL


def _open_fence(text: str) -> str:
    last = parser.parse(text)[-1:]
    return last[0].markup if last and last[0].type == "fence" else ""
