"""Code made shorter by a lexer: comments and needless blank lines go, and nothing that a machine reads.

Strings, docstrings, newlines, indentation, directives and pragmas stay. The result is lexed again: if its tokens
are not those of the original without comments, the original is kept. A comment that may be anything else
stays. Unknown languages, and those where comments are a matter of opinion, lose trailing blanks and repeated blank
lines only. A blank at the end of a line stays where it may count: behind a value, and everywhere in a makefile.

A message is read in blocks: prose, and what stands in fences with the label of each. A fence closes with at least as
many of its own marks (so that a fence may show another); an open one runs to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import yaml
from pygments.lexer import Lexer
from pygments.token import Comment, Error, Literal, String, Token

from health.compaction.reading.code_languages import (
    drops,
    ends_count,
    family_of,
    guess,
    is_pragma,
    lexer_of,
    tells_comments,
)
from health.compaction.reading.text import of_text, remembered

# A lexer needs some 3 µs a character, and runs twice: it must be able to gain something, and past these sizes code
# is treated as unknown.
LEAST_GAIN = 0.05
MAX_CHARS = 120_000
MAX_LINE_CHARS = 2_000

_DIRECTIVES = (Comment.Preproc, Comment.PreprocFile, Comment.Hashbang, Comment.Special)
_DROPPED = Token.Dropped
_HEREDOC = re.compile(r"<<[-~]?[ \t]{0,9}[\"'\\]?(\w+)")
_SPACED = re.compile(r"<(?:pre|textarea)\b|white-space", re.IGNORECASE)
_TO_DROP = re.compile(r"(?:#|//|--|;|%|'(?= )).*|(?<![ \t])[ \t]+$|^[ \t]*\n", re.M)
# `A = x ` keeps its blank in a makefile or a list of properties, so does such a line of a language that nobody named.
_VALUE = re.compile(r"^[ \t]*+[\w.$(){}/%-]{1,80}+[ \t]{0,9}[:?+!]{0,3}=")
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Piece = tuple[Any, str]


@remembered(128)
def compress(code: str, language: str | None = None) -> str:
    """The code without comments and blank lines, or as it was. `language` is a fence's label; "" or None: guessed."""
    if "\r" in code:
        unix = code.replace("\r\n", "\n")
        is_windows = "\r" not in unix and unix.count("\n") == code.count("\r\n")
        return compress(unix, language).replace("\n", "\r\n") if is_windows else code
    if not _may_gain(code):
        return code
    label = language or guess(code)
    lexer, is_strict = lexer_of(label), ends_count(label)
    try:
        shorter = _lexed(code, lexer, is_strict) if lexer and _is_fit(code, lexer) else _tidied(code, is_strict)
    except RecursionError:
        return code
    return shorter if len(shorter) < len(code) else code


def _may_gain(code: str) -> bool:
    """Whether comments, if all that looks like one is one, and blanks are enough of the code to look at it."""
    if "/*" in code or "<!--" in code or "\n=begin" in code or "{-" in code:
        return True
    return sum(len(match.group()) for match in _TO_DROP.finditer(code)) >= LEAST_GAIN * len(code)


def _is_fit(code: str, lexer: Lexer) -> bool:
    """Whether this lexer can be trusted with this code, and in time."""
    if len(code) > MAX_CHARS or max(map(len, code.split("\n"))) > MAX_LINE_CHARS:
        return False
    return tells_comments(lexer, code)


def _tidied(code: str, is_strict: bool) -> str:
    """With one blank line where there were several, and without blanks at the ends of lines where they do not count."""
    lines = [line if is_strict or _VALUE.match(line) else line.rstrip(" \t") for line in code.split("\n")]
    return "\n".join(line for at, line in enumerate(lines) if line or at == 0 or lines[at - 1])


def _lexed(code: str, lexer: Lexer, is_strict: bool) -> str:
    """Without comments and blank lines; where blank lines turn out to matter, without comments.

    `is_strict`: blanks at the ends of lines count.
    """
    pieces = _pieces(code, lexer)
    if any(kind in Error for kind, _ in pieces):
        return _tidied(code, is_strict)
    family = family_of(lexer)
    # A blank between words changes a page, and a selector: where the words would grow together, the check says no.
    gap = "" if family in ("markup", "css") else " "
    for tidy in (False,) if family == "markup" and _SPACED.search(code) else (True, False):
        shorter = _rebuilt(pieces, tidy=tidy, gap=gap, is_strict=is_strict)
        same = _signature(pieces) == _signature(_pieces(shorter, lexer))
        if same and (family != "yaml" or _is_same_yaml(code, shorter)):
            return shorter
    return code


def _pieces(code: str, lexer: Lexer) -> list[Piece]:
    """Tokens as kind and text, comments that nothing reads as _DROPPED."""
    tokens = lexer.get_tokens_unprocessed(code)
    family = family_of(lexer)
    pieces: list[Piece] = []
    before = ""
    for kind, text in _joined(_literal_heredocs(tokens, code) if family in ("shell", "docker") else _bare(tokens)):
        # "http://…" outside of a string is an address in a language of addresses, not a comment.
        is_read = not _is_comment(kind) or is_pragma(text) or (text.startswith("//") and before.endswith(":"))
        if is_read or not drops(text, before, family):
            pieces.append((kind, text))
            before = (before + text).rpartition("\n")[2]
        else:
            pieces.append((_DROPPED, text))
            before = before if "\n" not in text else ""
    return pieces


def _bare(tokens: Iterable[tuple[int, Any, str]]) -> Iterator[Piece]:
    return ((kind, text) for _, kind, text in tokens)


def _literal_heredocs(tokens: Iterable[tuple[int, Any, str]], code: str) -> Iterator[Piece]:
    """The pieces, those in heredocs as strings: the lexer knows only some kinds of heredoc."""
    spans = iter(_heredocs(code))
    start, end = next(spans, (len(code), len(code)))
    for at, kind, text in tokens:
        if at >= end:
            start, end = next(spans, (len(code), len(code)))
        yield String if start <= at < end else kind, text


def _heredocs(code: str) -> list[tuple[int, int]]:
    """Where the lines of each heredoc begin and end, its closing line included; one left open runs to the end."""
    spans: list[tuple[int, int]] = []
    at, start, closing = 0, 0, ""
    for line in code.splitlines(keepends=True):
        at += len(line)
        if closing and line.strip() == closing:
            spans.append((start, at))
            closing = ""
        elif not closing and (opened := _HEREDOC.search(line)):
            start, closing = at, opened[1]
    return [*spans, (start, at)] if closing else spans


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, with a comment that the lexer cut into several in one."""
    held = ""
    for kind, text in pieces:
        if _is_comment(kind) and not held.endswith("\n"):
            held += text
            continue
        if held:
            yield Comment, held
        held = text if _is_comment(kind) else ""
        if not held:
            yield kind, text
    if held:
        yield Comment, held


@cache
def _is_comment(kind: Any) -> bool:
    return kind in Comment and not any(kind in directive for directive in _DIRECTIVES)


@cache
def _is_literal(kind: Any) -> bool:
    return kind in Literal


@dataclass(slots=True)
class _Line:
    """A line on its way: whether it begins in a literal, ends in one, and lost a comment."""

    text: str = ""
    begins_literal: bool = False
    ends_literal: bool = False
    commented: bool = False


def _lines(pieces: Sequence[Piece], gap: str) -> list[_Line]:
    """The lines of the pieces. A dropped comment leaves the line break that it held, or a gap between words."""
    lines = [_Line()]
    for kind, text in pieces:
        dropped, literal = kind is _DROPPED, _is_literal(kind)
        first, *others = (("", "") if "\n" in text else (gap,)) if dropped else text.split("\n")
        lines[-1].text += first
        lines[-1].commented |= dropped
        for part in others:
            lines[-1].ends_literal = literal
            lines.append(_Line(part, begins_literal=literal, commented=dropped))
    return lines


def _rebuilt(pieces: Sequence[Piece], *, tidy: bool, gap: str, is_strict: bool) -> str:
    """The code of the pieces. Not `tidy`: only lines that lost a comment are touched.

    An empty line after a backslash stays: it ends what the backslash continues. So does every line of a literal.
    """
    kept: list[str] = []
    for line in _lines(pieces, gap):
        may_touch = (tidy or line.commented) and not line.ends_literal
        text = line.text.rstrip(" \t") if may_touch else line.text
        if is_strict and text:
            text = line.text
        if text or not may_touch or line.begins_literal or (kept and kept[-1].endswith("\\")):
            kept.append(text)
    ending = "\n" if pieces and pieces[-1][1].endswith("\n") and kept and kept[-1] else ""
    return "\n".join(kept) + ending


def _signature(pieces: Iterable[Piece]) -> list[Piece]:
    """What must be the same: every token but dropped comments, strings to the letter, and where lines break."""
    signature: list[Piece] = []
    breaks = False
    for kind, text in pieces:
        if kind is _DROPPED or not text.strip():
            breaks = breaks or ("\n" in text and bool(signature))
            continue
        if breaks:
            signature.append((Token.Text, "\n"))
        signature.append((kind, text if _is_literal(kind) else " ".join(text.split())))
        breaks = text.endswith("\n")
    return signature


def _is_same_yaml(code: str, shorter: str) -> bool:
    """Whether both parse to the same events: in YAML a blank line or a `#` may be text."""
    try:
        return _events(code) == _events(shorter)
    except yaml.YAMLError:
        return False


def _events(code: str) -> list[tuple[str, object, object]]:
    return [
        (type(event).__name__, getattr(event, "value", None), getattr(event, "tag", None))
        for event in yaml.parse(code, Loader=_YAML)
    ]


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
