"""Code loses its comments and blank lines and nothing else: strings, newlines, indentation and pragmas stay."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
import yaml

from health.compaction.reading.code import compress
from health.compaction.reading.code_languages import guess

# language, code, and what is left of it
LANGUAGES = {
    "python": (
        'def f(a):\n    """Doc.\n\n    More."""\n    # gone\n    x = "# stays"  # gone\n\n    return f"{a}#{x}"\n',
        'def f(a):\n    """Doc.\n\n    More."""\n    x = "# stays"\n    return f"{a}#{x}"\n',
    ),
    "javascript": (
        "/* gone\n   too */\nconst u = 'https://a'; // gone\n\nlet t = `a\n\n// stays ${u}`;\n/* gone */\n",
        "const u = 'https://a';\nlet t = `a\n\n// stays ${u}`;\n",
    ),
    "typescript": (
        "// gone\nlet a: Map<string, number>; /* gone */ let b = a!;\n",
        "let a: Map<string, number>;   let b = a!;\n",
    ),
    "go": (
        "//go:build linux\n\n// gone\npackage a\n\nvar s = `// stays`\n",
        "//go:build linux\npackage a\nvar s = `// stays`\n",
    ),
    "rust": ('fn a() {\n    let r = r#"// stays"#; // gone\n\n}\n', 'fn a() {\n    let r = r#"// stays"#;\n}\n'),
    "java": (
        '/** gone */\nclass A {\n  String s = "/* stays */"; // gone\n}\n',
        'class A {\n  String s = "/* stays */";\n}\n',
    ),
    "c": (
        '#include <a.h> // gone\n\n#define M(x) \\\n  x /* gone */\nchar *s = "//"; // gone\n',
        '#include <a.h>\n#define M(x) \\\n  x\nchar *s = "//";\n',
    ),
    "cpp": ("int a /* gone */b; // gone\nauto s = R\"(// stays)\";\n", "int a  b;\nauto s = R\"(// stays)\";\n"),
    "bash": (
        "#!/bin/sh\n# gone\nx=${y#z} # gone\necho 'a # stays' $# a#b\n",
        "#!/bin/sh\nx=${y#z}\necho 'a # stays' $# a#b\n",
    ),
    "sql": (
        "-- gone\nSELECT '--' /* gone */\n\nFROM a; -- gone\n",
        "SELECT '--'\nFROM a;\n",
    ),
    "html": (
        "<!-- gone -->\n<p>a // stays</p>\n<script>var a = '//'; // stays\n</script>\n",
        "<p>a // stays</p>\n<script>var a = '//'; // stays\n</script>\n",
    ),
    "css": (
        "/* gone */\na { background: url(http://x/y) }\n\n",
        "a { background: url(http://x/y) }\n",
    ),
    "yaml": (
        "# gone\na: b # gone\n\nu: http://x#y\n",
        "a: b\nu: http://x#y\n",
    ),
    "make": ("# gone\nall: x\n\techo '# stays'\n\n", "all: x\n\techo '# stays'\n"),
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_and_blank_lines_go_and_strings_stay(language: str) -> None:
    code, left = LANGUAGES[language]

    assert compress(code, language) == left


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_compressed_once_is_not_compressed_again(language: str) -> None:
    once = compress(LANGUAGES[language][0], language)

    assert compress(once, language) == once


# By what is special about them: the language, the code, and what is left of it, where that is not all.
LEFT: dict[str, tuple[str, str] | tuple[str, str, str]] = {
    # What the plan's regular expression did
    "an address in a string is no comment": (
        "js",
        'const a = "https://example.com/a";\n\nconst b = 1; // gone\n',
        'const a = "https://example.com/a";\nconst b = 1;\n',
    ),
    "a Python comment does not swallow the next line": ("python", "a = 1 # half\nb = 2\n", "a = 1\nb = 2\n"),
    "integer division is no comment": ("python", "b = a // 2  # half\n", "b = a // 2\n"),
    "blanks inside strings stay": ("python", 'x = "a    b"  # c\n', 'x = "a    b"\n'),
    "a return stays apart from the next line": (
        "js",
        "function f() {\n  return\n  a // c\n}\n",
        "function f() {\n  return\n  a\n}\n",
    ),
    "a comment over two lines still breaks the line": ("js", "return /* a\n b */ x\n", "return\n x\n"),
    # Where a lexer errs
    "a region mark of an editor goes": ("js", "//#region a\nlet b;\n", "let b;\n"),
    "an empty line that ends a continued command stays": (
        "bash",
        "run a \\\n# note\n-b\n",
        "run a \\\n\n-b\n",
    ),
    "words on a page of JSX are no comment": ("js", "const a = <p>see //x</p>; // c\n"),
    "C in the comments of Go stays": ("go", '// #include <a.h>\nimport "C"\n'),
    "metadata in the comments of a script stays": (
        "python",
        '# /// script\n# dependencies = ["a"]\n# ///\nimport a\n',
    ),
    "broken YAML stays": ("yaml", "a: [ # c\n\n\n"),
    "preformatted HTML keeps its blank lines": (
        "html",
        "<!-- c -->\n<pre>a  \n\n\nb</pre>\n",
        "<pre>a  \n\n\nb</pre>\n",
    ),
    "words of CSS would grow together": ("css", ".a/* c */.b { margin: 1px/* c */2px }\n"),
    "words of HTML would grow together": ("html", "a<!-- c -->b\n"),
    "code with an error is only tidied": ("python", "x = ?\n# stays\n\n\n\ny  \n", "x = ?\n# stays\n\ny\n"),
    # Which language
    "an unknown language loses trailing and repeated blanks only": (
        "klingon",
        "a # b   \n\n\n\n// c\n",
        "a # b\n\n// c\n",
    ),
    "a Makefile loses its comments and no blank that counts": (
        "make",
        "# gone, as this line is one whole comment\nA = x \n  # gone\nall:  \n\techo a\\ \n",
        "A = x \nall:  \n\techo a\\ \n",
    ),
    "a Makefile that is in doubt keeps its blanks": (
        "make",
        "define A\none  \ntwo \nendef\n# stays\n\n\n\n\n",
        "define A\none  \ntwo \nendef\n# stays\n",
    ),
    "Windows line ends are kept": ("python", "a = 1\r\n# c\r\nb = 2\r\n", "a = 1\r\nb = 2\r\n"),
    "mixed line ends are left alone": ("python", "a = 1\r\n# c\nb\r = 2\n"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left(case: str) -> None:
    language, code, *left = LEFT[case]

    assert compress(code, language) == (left[0] if left else code)


# What a machine reads


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "x = f()  # type: ignore[attr]"),
        ("python", "import a  # noqa: F401"),
        ("python", "# -*- coding: latin-1 -*-"),
        ("python", "# pragma: no cover"),
        ("js", "// eslint-disable-next-line no-console"),
        ("ts", "// @ts-expect-error: later"),
        ("js", "f(/* webpackChunkName: \"a\" */ 'b');"),
        ("go", "//go:embed data"),
        ("go", "//export Sum"),
        ("bash", "# shellcheck disable=SC2086"),
        ("ruby", "# frozen_string_literal: true"),
        ("csharp", "#region a"),
        ("mysql", "SELECT /*+ INDEX(a b) */ c FROM d;"),
        ("html", "<!--[if IE]><p>old</p><![endif]-->"),
        ("docker", "# syntax=docker/dockerfile:1"),
        ("c", "// SPDX-License-Identifier: MIT"),
    ],
)
def test_a_pragma_stays(language: str, line: str) -> None:
    assert line in compress(f"{line}\n\n\n", language)


def test_documentation_of_rust_stays_like_a_docstring() -> None:
    assert "/// What it does." in compress("/// What it does.\nfn a() {} // gone\n", "rust")


# Where a lexer errs


@pytest.mark.parametrize("word", ["EOF", "'EOF'", '"EOF"', "\\EOF", "-EOF"])
def test_a_heredoc_is_not_touched(word: str) -> None:
    heredoc = f"cat <<{word} > a.py\n# stays\n\nx = 1   \nEOF\n"

    assert compress(f"# gone\n{heredoc}echo # gone\n", "bash") == f"{heredoc}echo\n"


def test_a_block_of_yaml_text_keeps_its_blank_lines_and_hashes() -> None:
    code = "# gone\nt: |\n  # stays\n\n\n  b\nc: d # gone\n"

    shorter = compress(code, "yaml")

    assert yaml.safe_load(shorter) == yaml.safe_load(code)
    assert "gone" not in shorter


# Which language


@pytest.mark.parametrize("label", ["make", "Makefile", "bsdmake", "", None, "klingon", "properties", "ini"])
def test_a_blank_at_the_end_of_a_value_stays(label: str | None) -> None:
    code = "SPACED = a \nNEXT := b\t\n.x.y ?= c \nall: x\n\techo $(SPACED)b\n\n\n\n"

    assert compress(code, label) == code.replace("\n\n\n\n", "\n")


@pytest.mark.parametrize("label", ["md", "markdown"])
def test_a_line_break_of_markdown_stays(label: str) -> None:
    assert compress("one  \ntwo\n\n\n\n\n", label) == "one  \ntwo\n"


@pytest.mark.parametrize("label", [None, ""])
def test_without_a_label_the_language_is_guessed(label: str | None) -> None:
    assert compress("import a\n# gone\ndef f(x: int) -> int:\n    return x\n", label) == (
        "import a\ndef f(x: int) -> int:\n    return x\n"
    )


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "from a.b import c\n"),
        ("bash", "#!/usr/bin/env bash\n"),
        ("go", "package main\n"),
        ("rust", "pub fn main() {\n"),
        ("java", "package a.b;\n"),
        ("cpp", "#include <vector>\n"),
        ("c", "#include <stdio.h>\n"),
        ("typescript", "export interface A {\n"),
        ("javascript", "const a = require('a');\n"),
        ("sql", "SELECT a FROM b;\n"),
        ("html", "<!DOCTYPE html>\n"),
        ("", "Select the package from the list, then import it.\n# a heading\n"),
        ("", "key: value # why\n"),
    ],
)
def test_a_guess_is_careful(language: str, code: str) -> None:
    assert guess(code) == language


@pytest.mark.parametrize("label", ["Python", 'python title="a.py"', "py", "python3"])
def test_a_fence_label_may_be_written_in_many_ways(label: str) -> None:
    assert compress("a = 1  # gone\n", label) == "a = 1\n"


# At large


def test_code_that_could_lose_next_to_nothing_is_not_lexed() -> None:
    code = "value = compute(other)\n" * 50 + "# one comment\n"

    assert compress(code, "python") == code


@pytest.mark.parametrize(
    "name", ["dominds/settings", "health/compaction/reading/importance", "health/compaction/choosing/scoring"]
)
def test_our_own_code_means_the_same_afterwards(name: str) -> None:
    code = (Path(__file__).parents[4] / f"{name}.py").read_text()

    shorter = compress(code, "python")

    assert ast.dump(ast.parse(shorter)) == ast.dump(ast.parse(code))
    assert len(shorter) < len(code)


@pytest.mark.parametrize("code", ["", "\n", "   ", "#", "\\", "'''", '"', "/*", "<<EOF", "\x00", "# 中文\n代码 = 1\n"])
@pytest.mark.parametrize("language", ["python", "js", "bash", "yaml", "html", None])
def test_odd_input_never_grows_and_never_raises(code: str, language: str | None) -> None:
    assert len(compress(code, language)) <= len(code)


@pytest.mark.parametrize("code", ["a = 1  # c\n" * 200_000, "x" * 10_000_000, " " * 10_000_000 + "\n", "'" * 100_000])
def test_megabytes_take_no_longer_than_a_look(code: str) -> None:
    begun = time.process_time()

    compress(code, "python")

    assert time.process_time() - begun < 5
