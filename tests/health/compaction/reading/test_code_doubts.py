"""Where what looks like a comment may be none, the code stays whole: less is saved, and nothing is falsified."""

from __future__ import annotations

import pytest

from health.compaction.reading.code import compress

# Long enough that there is something to gain.
TELLS = "a comment of a certain length, as all have here, for the gain"
HASHES, SLASHES, DASHES = f"# {TELLS}\n", f"// {TELLS}\n", f"-- {TELLS}\n"
KEPT = [
    ("bash", HASHES, "(( x = 16#ff ))"),
    ("bash", HASHES, "let y=8#17"),
    ("bash", HASHES, "declare -i n=16#1f"),
    ("bash", HASHES, "echo a{#,b}"),
    ("bash", HASHES, "echo ${x/ #/b}"),
    ("bash", HASHES, 'echo "$(printf "%s" \'a\nb # c\')"'),
    ("make", HASHES, "all:\n\t@test $$# -gt 0 && echo ok"),
    ("make", HASHES, "all:\n\t@z=ab; echo $${#z}"),
    ("make", HASHES, "all:\n\techo a \\\n  # b"),
    ("make", HASHES, "x = a # b\ny = $(subst #,a,b)"),
    ("make", "", "# a \\\nx = a comment that goes on here\ny = b"),
    ("c", "", "// a \\\nint a_comment_that_goes_on_here;\nint b;"),
    ("kotlin", SLASHES, 'val x = "${m["//k"]}tail"'),
    ("kotlin", SLASHES, 'val x = """a ${m["b"]}\n// c\n"""'),
    ("scala", SLASHES, 'val x = s"${m("//k")}tail"'),
    ("dart", SLASHES, "var x = '${m['//k']}tail';"),
    ("csharp", SLASHES, 'var x = $"{d["//k"]}tail";'),
    ("csharp", SLASHES, 'var x = $@"{d["//k"]}tail";'),
    ("csharp", SLASHES, 'var x = """\na "\n// b\n""";'),
    ("javascript", SLASHES, "x = `${f({a: '}'}) + `// b`}`;"),
    ("javascript", SLASHES, "x = `a ${m[`\n// b\n`]}`;"),
    ("typescript", SLASHES, "x = `${m[`//k`]}tail`;"),
    ("javascript", SLASHES, "x <!--y;"),
    ("html", "<!-- a comment of a certain length -->\n", "<script>x = `${m[`//k`]}tail`;</script>"),
    ("php", f"<?php\n{SLASHES}", '$x = "{$m["//k"]}tail";'),
    ("python", HASHES, 'x = f"{d["#k"]}tail"'),
    ("python", HASHES, 'x = f"{d["a\'"]}"\ny = "b\' # c"'),
    ("swift", SLASHES, 'let x = "\\(m["//k"]!)tail"'),
    ("ruby", HASHES, 'x = "#{m["#k"]}tail"'),
    ("sql", DASHES, "SELECT [a--b], c FROM t;"),
    ("sql", DASHES, "SELECT [a -- b], c FROM t;"),
    ("sql", DASHES, "SELECT [it's], 'a\n-- b' FROM t;"),
    ("sql", DASHES, "SELECT q'[it's -- x]' FROM t;"),
    ("sql", DASHES, "SELECT 5--3;"),
    ("sql", DASHES, "SELECT 5 --3;"),
    ("scss", SLASHES, "a { b: unquote(http://a//b) }"),
    ("scss", SLASHES, "a { b: url(\n//a/b) }"),
    ("less", SLASHES, "a { b: c(d//e) }"),
    ("css", "/* a comment of a certain length */\n", "a { b: url( /*c*/d.png) }"),
    ("kotlin", SLASHES, "/* /* a */ b */\nval c = 1"),
    ("dart", SLASHES, "/* /* a */ b */\nvar c = 1;"),
    ("scala", SLASHES, "/* /* a */ b */\nval c = 1"),
    ("rust", SLASHES, "/* /* a */ b */\nlet c = 1;"),
    ("swift", SLASHES, "/* /* a */ b */\nlet c = 1"),
    ("d", SLASHES, "/+ /+ a +/ b +/\nint c = 1;"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "comment", "code"), KEPT)
def test_what_may_be_no_comment_stays(language: str, comment: str, code: str) -> None:
    assert compress(f"{comment}{code}\n", language).endswith(f"{code}\n")


@pytest.mark.parametrize(
    ("language", "code", "left"),
    [
        ("bash", f"f() {{ {HASHES}  x=${{y#z}} {HASHES}}}\n", "f() {\n  x=${y#z}\n}\n"),
        ("make", f"{HASHES}all:\n\techo # b\n", "all:\n\techo # b\n"),
        ("kotlin", f'val x = "${{a.b}}" {SLASHES}', 'val x = "${a.b}"\n'),
        ("csharp", f'if (a) {{ {SLASHES}  x = $"{{a.B}} c"; {SLASHES}}}\n', 'if (a) {\n  x = $"{a.B} c";\n}\n'),
        ("javascript", f"x = `${{a}} // b`; {SLASHES}", "x = `${a} // b`;\n"),
        ("sql", f"SELECT a {DASHES}FROM b;\n", "SELECT a\nFROM b;\n"),
        ("scss", f"a {{ {SLASHES}  {SLASHES}  b: c;\n}}\n", "a {\n  b: c;\n}\n"),
    ],
)
def test_what_can_be_nothing_else_goes(language: str, code: str, left: str) -> None:
    assert compress(code, language) == left
