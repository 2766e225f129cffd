"""What is known of programming languages: which lexer a label means, what code looks like, which comments work.

A language that cannot be told for certain is unknown: better no lexer than the wrong one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# No programming language, or one whose lexer would see comments that are none.
_NO_CODE = frozenset(
    [
        "text",
        "txt",
        "plain",
        "plaintext",
        "output",
        "console",
        "diff",
        "patch",
        "md",
        "markdown",
        "jsx",
        "tsx",
        "rst",
        "tex",
    ]
)
_OTHER_NAMES = {"python3": "python", "node": "javascript", "golang": "go", "yml": "yaml", "vue": "html"}
# What needs care of its own.
_FAMILIES = {
    "python": "python",
    "go": "go",
    "yaml": "yaml",
    "html": "markup",
    "xml": "markup",
    "css": "css",
    "scss": "css",
    "less": "css",
    "bash": "shell",
    "docker": "shell",
    "javascript": "script",
    "typescript": "script",
}

# Lines that hardly another language would have.
_TELLING = (
    ("bash", r"#! ?/.{1,60}\b(?:ba|z|da|k)?sh\b"),
    ("python", r"#! ?/.{1,60}\bpython"),
    ("python", r" *(?:async )?def \w+\(.*\)(?: ->.*)?:(?: *#.*)?$|from [\w.]+ import |class \w+(?:\([\w., =]*\))?:$"),
    ("go", r"package \w+$|func (?:\(\w+ \*?\w+\) )?\w+\(.*\{$"),
    ("rust", r" *(?:pub )?fn \w+.*\{$|use (?:std|crate)::|#\[derive\("),
    ("java", r"import java[.x]|(?:public )(?:final |abstract )?class \w+|package [\w.]+;$"),
    ("cpp", r"#include <\w+>$|using namespace std;|template ?<"),
    ("c", r"#include [<\"]\w[\w/]*\.h[>\"]"),
    ("typescript", r"(?:export )?interface \w+ \{$|import type |export type \w+ ="),
    ("javascript", r"(?:const|let|var) \w+ = require\(|import .* from ['\"]"),
    ("javascript", r"(?:export )?(?:default )?(?:async )?function \w+\(.*\) \{"),
    ("sql", r"CREATE TABLE\b|INSERT INTO\b|ALTER TABLE\b|SELECT .* FROM\b"),
    ("html", r"\s*<!DOCTYPE html|\s*<html\b"),
)
_TELLS = tuple((name, re.compile(pattern)) for name, pattern in _TELLING)
_SAMPLE_LINES, _SAMPLE_WIDTH = 60, 300

# Comments that a tool reads. `#region` only folds in an editor and goes, but for C#, where it is a directive.
# Licence lines stay: they bind.
_PRAGMAS = (
    r"type:|noqa|pragma|pylint:|mypy:|ruff:|flake8|isort:|fmt: ?o|yapf:|nosec|pyright:|-\*-|vim:|coding[:=]|cython:",
    r"eslint|jshint|jslint|tslint|prettier-|biome-|istanbul|[cv]8 ignore|webpack|__PURE__|[@#] sourceMappingURL",
    r"@(?:ts-|flow|noflow|jsx|vite|license|preserve|formatter|type\b|__)|#__|<reference|<amd",
    r"go:|\+build|nolint|NOLINT|line \S+:\d|clang-|IWYU|NOSONAR|CHECKSTYLE|fall-?through|cppcheck",
    r"shellcheck|frozen_string_literal|encoding:|rubocop:|typed:|\+ ?\w+\(|syntax=|escape=|check=|hadolint",
    r"yaml-language-server|yamllint|ansible-lint|SPDX-|Copyright|\(c\) |\[if |<!\[endif|ko |/ko",
)
_PRAGMA = re.compile(rf"[\s#/*!<;%-]{{0,12}}(?:{'|'.join(_PRAGMAS)})|//export \w", re.IGNORECASE)


def is_pragma(comment: str) -> bool:
    """Whether a tool reads this comment; so does MySQL (`/*! … */`), and an optimiser (`/*+ … */`)."""
    return comment.startswith(("#!", "/*!", "/*+", "--+")) or _PRAGMA.match(comment[:200]) is not None


def lexer_of(language: str) -> Lexer | None:
    """The lexer that a fence's label means, None for an unknown one."""
    label, *_ = language.lower().split(maxsplit=1) or [""]
    return None if label in _NO_CODE else _lexer(_OTHER_NAMES.get(label, label))


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


def family_of(lexer: Lexer) -> str:
    """python, go, yaml, markup, css, shell, script (JavaScript, TypeScript), or "" for those without a special case."""
    return next((_FAMILIES[alias] for alias in lexer.aliases if alias in _FAMILIES), "")


def guess(code: str) -> str:
    """The language that a line near the top tells, "" if none does. The first line that tells decides."""
    for line in code.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]:
        for name, pattern in _TELLS:
            if pattern.match(line[:_SAMPLE_WIDTH]):
                return name
    return ""
