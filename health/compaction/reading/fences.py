"""A message in blocks: prose, and what stands in fences with the label of each. Together they are the message again.

A fence closes with at least as many of its own marks (so that a fence may show another); an open one runs to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from health.compaction.reading.text import of_text

_OPENING = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})[ \t]*([^`\n]*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """`label` is None for prose, and what follows the marks for a fence ("" for a bare one)."""

    body: str
    label: str | None = None
    opening: str = ""
    closing: str = ""

    def saying(self, body: str) -> Block:
        """The same block with another body. The closing marks keep a line of their own."""
        needs_break = bool(self.closing and body) and not body.endswith("\n")
        return replace(self, body=f"{body}\n" if needs_break else body)


@of_text
def blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a text in order; empty prose is none."""
    found: list[Block] = []
    lines: list[str] = []
    opening, label, marks = "", None, ""
    for line in text.splitlines(keepends=True):
        if marks and _closes(line, marks):
            found.append(Block(body="".join(lines), label=label, opening=opening, closing=line))
            lines, opening, label, marks = [], "", None, ""
        elif not marks and (opened := _OPENING.match(line.rstrip("\r\n"))):
            found += [Block(body="".join(lines))] if lines else []
            lines, opening, label, marks = [], line, opened[2].strip(), opened[1]
        else:
            lines.append(line)
    return (*found, *([Block(body="".join(lines), label=label, opening=opening)] if lines or marks else []))


def _closes(line: str, marks: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(marks) and bare == marks[0] * len(bare)


def joined(parts: Iterable[Block]) -> str:
    return "".join(f"{part.opening}{part.body}{part.closing}" for part in parts)
