"""Whatever stands in a fence, in forty languages: what is no comment is still there afterwards, to the letter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from health.compaction.config import CompressRatios, ContentTypeChunking, ContextConfig
from health.compaction.reading.code import compress
from health.compaction.reading.code_languages import lexer_of, tells_comments
from health.compaction.strategies.content_type_chunking import content_type_chunking
from health.compaction.terms.units import Role
from tests.health.compaction.builders import KIT, a_state, a_unit, play

# What begins a comment up to the line's end, and what holds one between two marks.
SLASHES, HASH = (("//",), (("/*", "*/"),)), (("#",), ())
MARKUP = ((), (("<!--", "-->"),))
# Language, its comments, and how it writes strings: "~" stands for what is in one.
LANGUAGES = {
    "python": (HASH, ['x = "~"', "x = '~'", 'x = """~"""', 'x = f"{y["~"]}"', "x = f'{y['~']}'", 'x = r"~\\"']),
    "javascript": (SLASHES, [
        'x = "~";', "x = '~';", "x = `~`;", "if (x) /'/.test(\"a'b ~\");", "x = /[/~]/;", "x = `${y[`~`]}`;",
    ]),
    "typescript": (SLASHES, [
        'let x: string = "~";', "x = `${y} ~`;", "x = a / b / '~'.length;", "x = `${f({a: '}'}) + `~`}`;",
    ]),
    "go": (SLASHES, ['x := "~"', "x := `~`", "x := '\"'"]),
    "rust": (SLASHES, ['let x = "~";', 'let x = r#"~"#;', "fn f<'a>(x: &'a str) {}"]),
    "java": (SLASHES, ['String x = "~";', 'String x = """\n~""";', "char x = '\"';"]),
    "c": (SLASHES, ['char *x = "~";', "char x = '\"';", 'char *x = "a\\"~";']),
    "cpp": (SLASHES, ['auto x = R"(~)";', 'auto x = "~";', "int x = 1'000;"]),
    "csharp": (SLASHES, [
        'var x = @"c:\\";', 'var x = "~";', 'var x = $"{y} ~";', 'var x = $"{y["~"]}";', 'var x = """\na "\n~\n""";',
    ]),
    "kotlin": (SLASHES, ['val x = "~"', 'val x = """~"""', 'val x = "${y["~"]}"', "/* /* a */ ~ */"]),
    "scala": (SLASHES, ['val x = "~"', 'val x = """~"""', 'val x = s"${y("~")}"', "/* /* a */ ~ */"]),
    "dart": (SLASHES, ["var x = '~';", "var x = r'~';", 'var x = "~";', "var x = '${y['~']}';", "/* /* a */ ~ */"]),
    "php": ((("//", "#"), (("/*", "*/"),)), ['<?php $x = "~";', "$x = '~';", '$x = "~ ?> ~";', '$x = "{$y["~"]}";']),
    "bash": (HASH, [
        'x="~"', "x='~'", 'x="$(echo "~")"', "x=${y#a} z\\ #b", "cat <<EOF\n~\nEOF", "(( x = 16#ff )); y='~'",
        "let y=8#17; y='~'", "echo a{#,b} '~'",
    ]),
    "docker": (HASH, ['ENV A="~"', "RUN echo '~'", "ENV A=b#c"]),
    "make": (HASH, ["x = a\\#b", "all:\n\techo '~'", "all:\n\ttest $$# -gt 0 && echo '~'", "x = $(y ~)"]),
    "sql": ((("--",), (("/*", "*/"),)), [
        "SELECT '~';", "SELECT E'a\\'~';", "SELECT $$~$$;", 'SELECT "~";', "SELECT [~];", "SELECT q'[it's ~]';",
        "SELECT 5--3, '~';",
    ]),
    "html": (MARKUP, [
        "<p>it's</p>", '<a title="~">b</a>', "<script>var a = '~';</script>", "<script>a = `${b[`~`]}`;</script>",
    ]),
    "xml": (MARKUP, ["<a>it's</a>", '<a b="~"/>', "<![CDATA[~]]>"]),
    "css": (((), (("/*", "*/"),)), ['a { content: "~" }', "a { background: url(http://a/b) }"]),
    "scss": (SLASHES, ['a { content: "~" }', "a { b: unquote(http://~) }", "a { background: url(http://a/b) }"]),
    "less": (SLASHES, ['a { content: "~" }', "a { b: unquote(http://~) }", "a { background: url(http://a/b) }"]),
    "yaml": (HASH, ['x: "~"', "x: a#b", "x: |\n  ~"]),
    "toml": (HASH, ['x = "~"', "x = '~'", 'x = """\n~"""']),
    "lua": ((("--",), (("--[[", "]]"),)), ['x = "~"', "x = [[~]]"]),
    "protobuf": (SLASHES, ['option x = "~";']),
    "graphql": (HASH, ['"~"\ntype X { y: Z }', '"""~"""']),
    # Nobody can tell for certain what is a comment here.
    "ini": (((), ()), ["colour = #ff0000", "password = pa#ss;~", "x = ~"]),
    "cfg": (((), ()), ["password = pa;~", "x = ~"]),
    "nginx": (((), ()), ['set $x "#~";', "return 301 http://a/#/~;"]),
    "apache": (((), ()), ["Redirect /a http://b/#~"]),
    "properties": (((), ()), ["x = a # ~", "y=!~"]),
    "perl": (((), ()), ["$x = q{# ~};", "s#a#~#;"]),
    "ruby": (((), ()), ['x = "#{y} ~"', "x = %w(# ~)"]),
    "powershell": (((), ()), ['$x = "a`"# ~"']),
    "mysql": (((), ()), ["SELECT 'a\\'# ~';"]),
    "haskell": (((), ()), ["x --> y ~"]),
    "elixir": (((), ()), ["x = ~s(# ~)"]),
    "matlab": (((), ()), ["x = a'; y = '% ~';"]),
    "vim": (((), ()), ['let x = "~"']),
}  # fmt: skip
WORD = re.compile(r"\w+")
EXAMPLES = 25
MARKS = [
    "//",
    "#",
    "--",
    ";",
    "/* ",
    "*/",
    "<!--",
    "-->",
    "%",
    "'",
    '"',
    "`",
    "\\",
    "\n",
    " ",
    "(",
    ")",
    "[[",
    "]]",
    "$",
    "((",
    "16#ff",
    "${",
    "}",
    '$"{',
    "\t",
    "[",
    "q'[",
]


def words_that_must_stay(text: str, language: str) -> list[str]:
    """Those that no reading of the language can take for a comment: no mark in their line, none left open before."""
    (lines, pairs), _ = LANGUAGES[language]
    must: list[str] = []
    for found in WORD.finditer(text):
        before = text[: found.start()]
        line = before.rpartition("\n")[2]
        in_pair = any(
            before.count(opening) > before.count(closing) or before.rfind(opening) + 1 >= before.rfind(closing) > -1
            for opening, closing in pairs
        )
        if not in_pair and not any(mark in line for mark in lines):
            must.append(found.group())
    return must


def stands(words: list[str], text: str) -> bool:
    """Whether the words stand in this text, in this order."""
    left = iter(WORD.findall(text))
    return all(word in left for word in words)


@st.composite
def programs(draw: st.DrawFn, language: str) -> tuple[str, list[str]]:
    """Lines of code with all that looks like a comment in their strings, real comments between them; and its words."""
    (lines, pairs), strings = LANGUAGES[language]
    looks = [*(mark for mark in lines), *(opening for opening, _ in pairs), ";", "#", "//"]
    code: list[str] = []
    kept: list[str] = []
    for at in range(draw(st.integers(2, 8))):
        mark = draw(st.sampled_from(looks))
        form = draw(st.sampled_from(strings))
        if "~" in form:
            kept += [f"kept{at}a", f"kept{at}b"]
        blank = draw(st.sampled_from(["", " "]))
        line = form.replace("~", f"kept{at}a{blank}{mark}{blank}kept{at}b")
        comments = [f" {begin} gone{at} it's a comment of a certain length" for begin in lines]
        comments += [f" {opening} gone{at} {closing}" for opening, closing in pairs]
        own = draw(st.sampled_from(["", *comments]))
        code += [own.strip()] if own and draw(st.booleans()) else []
        code.append(line + draw(st.sampled_from(["", own])))
    return "\n".join(code) + "\n", kept


def shown(language: str, text: str) -> str:
    """What the model sees of an answer that holds the text in a fence, after the strategy that shortens code."""
    config = ContextConfig(content_type_chunking=ContentTypeChunking(compress_ratios=CompressRatios()))
    fenced = a_unit(f"```{language}\n{text}\n```", id="code", role=Role.ASSISTANT)
    state = a_state(a_unit("begin"), fenced, a_unit("go on"), config=config)
    return next(unit.content for unit in play(content_type_chunking, state).state.units if unit.id == "code")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_outside_of_comments_survives(language: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(programs(language))
    def survives(program: tuple[str, list[str]]) -> None:
        code, kept = program
        assert stands(kept, compress(code, language)), code

    survives()


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_that_is_no_code_at_all_loses_nothing_but_what_looks_like_a_comment(language: str) -> None:
    pieces = st.one_of(st.sampled_from(MARKS), st.sampled_from(["pa", "ss", "word", "x1", "=", ": "]))

    @settings(max_examples=EXAMPLES)
    @given(st.lists(pieces, max_size=60).map("".join))
    def survives(text: str) -> None:
        text += " // # -- a comment at the end, so that there is something to gain by looking at it\n"
        assert stands(words_that_must_stay(text, language), compress(text, language)), text

    survives()


@given(st.sampled_from(list(LANGUAGES)).flatmap(lambda name: st.tuples(st.just(name), programs(name))))
def test_a_view_leaves_out_of_a_fence_what_is_marked_or_a_comment(drawn: tuple[str, tuple[str, list[str]]]) -> None:
    language, (code, kept) = drawn

    left = shown(language, code)

    assert stands(kept, left) or "[…" in left, code


def test_most_of_these_languages_are_still_made_shorter() -> None:
    known = [lexer for language in LANGUAGES if (lexer := lexer_of(language)) is not None]

    assert sum(tells_comments(lexer, "x") for lexer in known) >= 25
    assert len(LANGUAGES) == 40
    assert KIT is not None
