"""What is known of programming languages: which lexer a label means, what code looks like, which comments work.

A language that cannot be told for certain is unknown: better no lexer than the wrong one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# Whose lexers tell comments from text for certain. What else may stand in a fence stays as it is: where `#` and `;` are
# comments here and values there (ini, nginx), or quoting depends on the dialect, a lexer guesses.
_TRUSTED = frozenset([
    "python", "javascript", "typescript", "go", "rust", "java", "c", "cpp", "csharp", "kotlin", "scala", "dart", "php",
    "bash", "docker", "make", "sql", "html", "xml", "css", "scss", "less", "yaml", "toml", "lua", "protobuf", "graphql",
])  # fmt: skip
# No programming language, or one in which words stand between the code.
_NO_CODE = frozenset([
    "text", "txt", "plain", "plaintext", "output", "console", "diff", "patch", "md", "markdown", "jsx", "tsx", "rst",
    "tex",
])  # fmt: skip
_OTHER_NAMES = {"python3": "python", "node": "javascript", "golang": "go", "yml": "yaml", "vue": "html"}
# A blank at the end of a line is part of a value, or breaks the line.
_ENDS_COUNT = frozenset(["make", "makefile", "mf", "bsdmake", "properties", "jproperties", "md", "markdown"])
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
    "docker": "docker",
    "sql": "sql",
    "make": "make",
    "php": "php",
    "javascript": "script",
    "typescript": "script",
    "csharp": "csharp",
    "kotlin": "template",
    "scala": "template",
    "dart": "template",
    **dict.fromkeys(["rust", "java", "c", "cpp", "protobuf"], "nesting"),
}

# A hole of a template that holds more than names: quotes in it may be those of another text.
_HOLE = r"\$\{(?![\w .,()\[\]?!+*-]{0,200}\})"
# In a comment another one begins: some languages nest them, and a lexer may not.
_NESTED = r"/\*(?:(?!\*/|/\*)[\s\S])*+/\*"
# Which of two heredocs a line belongs to, or what ends one that is named in the next line.
_TWO_HEREDOCS = r"<<[^\n]*<<|<<-?[ \t]*+\\\n"
# With these in it even a good lexer may take text for a comment, and the code stays whole.
_DOUBTFUL = {
    # In JSX `//` may be words on a page. Whether `/` after a bracket divides or opens a pattern takes a parser.
    "script": rf"</[A-Za-z>]|/>|[)}}\]]\s*/(?![/*])[^\n]*[\"'`*/]|{_HOLE}|{_NESTED}",
    # Go's `import "C"` and Python's `# /// script` put code into comments.
    "go": rf'import "C"|{_NESTED}',
    # Since Python 3.12 a hole may hold the quote of its own text.
    "python": r"# /// script|\b(?:[fFtT][rR]?|[rR][fFtT])(?:"
    r"\"[^\"{\n]*+(?:\{[^}\"\n]*+\}[^\"{\n]*+)*+\{[^}\"\n]*+[\"\n]|'[^'{\n]*+(?:\{[^}'\n]*+\}[^'{\n]*+)*+\{[^}'\n]*+['\n])",
    # A quoted command may hold quotes; a blank after a backslash ends no word.
    "shell": rf"\"[^\"\n]*(?:\$\(|`)|\\[ \t]?#|{_TWO_HEREDOCS}",
    "docker": _TWO_HEREDOCS,
    # What stands in these is text.
    "markup": r"(?i:<(?:textarea|xmp|iframe|noembed|noframes|plaintext)\b|<title\b[^<]*+<(?!/title))",
    # Each dialect has its own escapes, quotes and nested comments.
    "sql": rf"(?i:\bDELIMITER\b)|\\|\$|#|`|\b[nN]?[qQ]'|\[[^\[\]'\"/-]*+['\"/-]|{_NESTED}",
    "make": r"\\#|\bdefine\b|RECIPEPREFIX|\\\n[^\n]*#|^[^#\n]*+#[^\n]*\\$",
    "php": rf"\?>|<<<|\{{\$(?![\w .()\[\]>-]{{0,200}}\}})|{_HOLE}|{_NESTED}",
    # An unquoted address may stand behind a blank or in its own line.
    "css": rf"\(\s*+/[/*]|url\([^()\n]*+$|:\s*+\{{|{_NESTED}",
    "csharp": r"\"\"\"|@\$|\$\$|\$@?\"(?!(?:[^\"{}\\\n]|\\[nrt]|\{[\w .,:()\[\]?-]*+\})*+\")|" + _NESTED,
    "template": rf"</[A-Za-z>]|/>|{_HOLE}|{_NESTED}",
    "nesting": _NESTED,
}
_DOUBTS = {family: re.compile(pattern, re.MULTILINE) for family, pattern in _DOUBTFUL.items()}
# What may stand before a comment in its line: no quote is open there.
_ESCAPED = re.compile(r"\\.")
_NESTING = re.compile(r"\b[rR]?[fFtT][rR]?[\"']")
# A word of the shell after which `#` belongs to a number or a name.
_COUNTING = re.compile(r"\b(?:let|declare|typeset|local|readonly|export)\b")

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
    label = _label(language)
    return None if label in _NO_CODE else _lexer(_OTHER_NAMES.get(label, label))


def ends_count(language: str) -> bool:
    """Whether a blank at the end of a line means something in the language of this label."""
    return _label(language) in _ENDS_COUNT


def _label(language: str) -> str:
    return next(iter(language.lower().split(maxsplit=1)), "")


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


def tells_comments(lexer: Lexer, code: str) -> bool:
    """Whether it knows for certain what is a comment in its language, and in this code."""
    doubt = _DOUBTS.get(family_of(lexer))
    return not _TRUSTED.isdisjoint(lexer.aliases) and (doubt is None or doubt.search(code) is None)


def drops(comment: str, before: str, family: str) -> bool:
    """Whether what a lexer takes for a comment can be nothing else, after this beginning of its line."""
    text = comment.lstrip()
    before = (before + comment[: len(comment) - len(text)]).rpartition("\n")[2]
    if not _is_marked(text, family) or not begins_plainly(before, family):
        return False
    return not before or before[-1] in " \t"


def _is_marked(text: str, family: str) -> bool:
    """Whether it has the marks of a whole comment, and the next line is no part of it in another dialect."""
    if family == "markup":
        return text.startswith("<!--") and text.endswith("-->")
    if text.startswith("/*"):
        return text.endswith("*/") and "/*" not in text[2:]
    if family == "sql":
        return text.startswith(("-- ", "--\t", "--\n"))
    line = text.rstrip()
    return line.startswith(("//", "#", "--")) and "\n" not in line and not line.endswith("\\")


def begins_plainly(before: str, family: str) -> bool:
    """Whether a comment can begin after this beginning of its line: no quote is open, nothing there is ambiguous."""
    if family in ("docker", "make"):
        return not before.strip(" ")
    plain = _ESCAPED.sub("", before)
    is_open = any(plain.count(opening) != plain.count(closing) for opening, closing in ("()", "[]"))
    is_in_braces = plain.count("{") != plain.count("}")
    if family == "shell":
        is_open = is_open or (is_in_braces and "${" in plain)
        return not is_open and not any(quote in plain for quote in "\"'`") and not _COUNTING.search(plain)
    if family in ("sql", "css") and is_open:
        return False
    if family == "python" and _NESTING.search(plain):
        return False
    if (is_open or is_in_braces) and any(quote in plain for quote in "\"'`"):
        return False
    return all(plain.count(quote) % 2 == 0 for quote in "\"'`")


def family_of(lexer: Lexer) -> str:
    """Which special case it is, "script" for JavaScript and TypeScript; "" for those without one."""
    return next((_FAMILIES[alias] for alias in lexer.aliases if alias in _FAMILIES), "")


def guess(code: str) -> str:
    """The language that a line near the top tells, "" if none does. The first line that tells decides."""
    for line in code.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]:
        for name, pattern in _TELLS:
            if pattern.match(line[:_SAMPLE_WIDTH]):
                return name
    return ""
