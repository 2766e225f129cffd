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


# What the plan's regular expression did


def test_an_address_in_a_string_is_no_comment() -> None:
    code = 'const a = "https://example.com/a";\n\nconst b = 1; // gone\n'

    assert compress(code, "js") == 'const a = "https://example.com/a";\nconst b = 1;\n'


def test_a_python_comment_does_not_swallow_the_next_line() -> None:
    assert compress("a = 1 # half\nb = 2\n", "python") == "a = 1\nb = 2\n"


def test_integer_division_is_no_comment() -> None:
    assert compress("b = a // 2  # half\n", "python") == "b = a // 2\n"


def test_blanks_inside_strings_stay() -> None:
    assert compress('x = "a    b"  # c\n', "python") == 'x = "a    b"\n'


def test_a_return_stays_apart_from_the_next_line() -> None:
    assert compress("function f() {\n  return\n  a // c\n}\n", "js") == "function f() {\n  return\n  a\n}\n"


def test_a_comment_over_two_lines_still_breaks_the_line() -> None:
    assert compress("return /* a\n b */ x\n", "js") == "return\n x\n"


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


def test_a_region_mark_of_an_editor_goes() -> None:
    assert compress("//#region a\nlet b;\n", "js") == "let b;\n"


def test_documentation_of_rust_stays_like_a_docstring() -> None:
    assert "/// What it does." in compress("/// What it does.\nfn a() {} // gone\n", "rust")


# Where a lexer errs


@pytest.mark.parametrize("word", ["EOF", "'EOF'", '"EOF"', "\\EOF", "-EOF"])
def test_a_heredoc_is_not_touched(word: str) -> None:
    heredoc = f"cat <<{word} > a.py\n# stays\n\nx = 1   \nEOF\n"

    assert compress(f"# gone\n{heredoc}echo # gone\n", "bash") == f"{heredoc}echo\n"


def test_an_empty_line_that_ends_a_continued_command_stays() -> None:
    assert compress("run a \\\n# note\n-b\n", "bash") == "run a \\\n\n-b\n"


def test_words_on_a_page_of_jsx_are_no_comment() -> None:
    code = "const a = <p>see //x</p>; // c\n"

    assert compress(code, "js") == code


def test_c_in_the_comments_of_go_stays() -> None:
    code = '// #include <a.h>\nimport "C"\n'

    assert compress(code, "go") == code


def test_metadata_in_the_comments_of_a_script_stays() -> None:
    code = '# /// script\n# dependencies = ["a"]\n# ///\nimport a\n'

    assert compress(code, "python") == code


def test_a_block_of_yaml_text_keeps_its_blank_lines_and_hashes() -> None:
    code = "# gone\nt: |\n  # stays\n\n\n  b\nc: d # gone\n"

    shorter = compress(code, "yaml")

    assert yaml.safe_load(shorter) == yaml.safe_load(code)
    assert "gone" not in shorter


def test_broken_yaml_stays() -> None:
    assert compress("a: [ # c\n\n\n", "yaml") == "a: [ # c\n\n\n"


def test_preformatted_html_keeps_its_blank_lines() -> None:
    code = "<!-- c -->\n<pre>a  \n\n\nb</pre>\n"

    assert compress(code, "html") == "<pre>a  \n\n\nb</pre>\n"


@pytest.mark.parametrize(
    ("language", "code"), [("css", ".a/* c */.b { margin: 1px/* c */2px }\n"), ("html", "a<!-- c -->b\n")]
)
def test_code_whose_words_would_grow_together_stays(language: str, code: str) -> None:
    assert compress(code, language) == code


def test_code_with_an_error_is_only_tidied() -> None:
    assert compress("x = ?\n# stays\n\n\n\ny  \n", "python") == "x = ?\n# stays\n\ny\n"


# Which language


def test_an_unknown_language_loses_trailing_and_repeated_blanks_only() -> None:
    assert compress("a # b   \n\n\n\n// c\n", "klingon") == "a # b\n\n// c\n"


@pytest.mark.parametrize("label", ["make", "Makefile", "bsdmake", "", None, "klingon", "properties", "ini"])
def test_a_blank_at_the_end_of_a_value_stays(label: str | None) -> None:
    code = "SPACED = a \nNEXT := b\t\n.x.y ?= c \nall: x\n\techo $(SPACED)b\n\n\n\n"

    assert compress(code, label) == code.replace("\n\n\n\n", "\n")


def test_a_makefile_loses_its_comments_and_no_blank_that_counts() -> None:
    code = "# gone, as this line is one whole comment\nA = x \n  # gone\nall:  \n\techo a\\ \n"

    assert compress(code, "make") == "A = x \nall:  \n\techo a\\ \n"


def test_a_makefile_that_is_in_doubt_keeps_its_blanks() -> None:
    code = "define A\none  \ntwo \nendef\n# stays\n\n\n\n\n"

    assert compress(code, "make") == "define A\none  \ntwo \nendef\n# stays\n"


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


def test_windows_line_ends_are_kept() -> None:
    assert compress("a = 1\r\n# c\r\nb = 2\r\n", "python") == "a = 1\r\nb = 2\r\n"


def test_mixed_line_ends_are_left_alone() -> None:
    assert compress("a = 1\r\n# c\nb\r = 2\n", "python") == "a = 1\r\n# c\nb\r = 2\n"


@pytest.mark.parametrize("code", ["a = 1  # c\n" * 200_000, "x" * 10_000_000, " " * 10_000_000 + "\n", "'" * 100_000])
def test_megabytes_take_no_longer_than_a_look(code: str) -> None:
    begun = time.process_time()

    compress(code, "python")

    assert time.process_time() - begun < 5
