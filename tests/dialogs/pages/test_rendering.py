"""Markdown as people see it: nothing in it acts or loads, and no text takes forever."""

from __future__ import annotations

import time
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialogs.common.bounded import BoundedCache
from dialogs.pages import rendering
from dialogs.pages.rendering import render_block, render_markdown
from tests.dialogs.pages.views.pages import Page

HARMLESS = {"div", "p", "br", "a", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "span", "hr"}


def tags(markdown: str) -> list[str]:
    return [tag for tag, _attrs in Page(render_markdown(markdown)).tags]


def links(markdown: str) -> list[str]:
    return Page(render_markdown(markdown)).links()


# --- Nothing acts, nothing loads


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)" style="color:red" onclick="alert(1)">here</a>',
        '<div hx-get="/admin/" hx-trigger="load"></div>',
        "<scr<script>ipt>alert(1)</scr</script>ipt>",
        "```<script>\nalert(1)\n```",
        "```html\n</code></pre><script>alert(1)</script>\n```",
        "    <script>alert(1)</script>",
        "| <script>alert(1)</script> |\n| --- |\n| <img onerror=alert(1)> |",
        "# <b onmouseover=alert(1)>heading</b>",
        "[a](https://example.org \"' onmouseover=alert(1) x='\")",
        "<!-- --!><script>alert(1)</script> -->",
    ],
)
def test_html_is_text_and_never_acts(hostile: str) -> None:
    found = Page(render_markdown(hostile))

    assert found.offences == []
    assert {tag for tag, _attrs in found.tags} <= {*HARMLESS, "button", "table", "thead", "tbody", "tr", "th", "td"}
    assert not {name for _tag, attrs in found.tags for name in attrs if name.startswith(("on", "hx-"))}


@pytest.mark.parametrize(
    "link",
    [
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "![a](data:image/svg+xml;base64,PHN2Zz4=)",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n[a]",
        "[a](<javascript:alert(1)>)",
        "![a](javascript:alert(1))",
    ],
)
def test_links_to_anything_but_the_web_and_mail_lead_nowhere(link: str) -> None:
    assert links(link) == []


@pytest.mark.parametrize("address", ["https://example.org/a?b=c&d=e", "http://example.org", "mailto:a@example.org"])
def test_links_of_the_web_lead_there_without_saying_from_where(address: str) -> None:
    page = Page(render_markdown(f"[words]({address})"))

    ((_tag, attrs),) = [found for found in page.tags if found[0] == "a"]
    assert attrs["href"] == address
    assert set(str(attrs["rel"]).split()) == {"noopener", "noreferrer", "nofollow"}


def test_a_remote_image_is_a_link_to_it_and_one_that_is_a_link_is_one_link() -> None:
    markdown = "![a cat](https://example.org/cat.png)"

    assert "img" not in tags(markdown)
    assert links(markdown) == ["https://example.org/cat.png"]
    assert "a cat" in Page(render_markdown(markdown)).text
    assert links(f"[{markdown}](https://example.org/build)") == ["https://example.org/build"]


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("<>\"'=/ascriptonerrg:()[]!`\n &#;x"), max_size=80))
def test_no_text_makes_a_page_act(text: str) -> None:
    assert Page(render_markdown(text)).offences == []


# --- What it looks like


@pytest.mark.parametrize(
    "text", ["مرحبا بالعالم", "👩‍👩‍👧‍👦 🏳️‍🌈", "但是奶奶对坚果过敏。", "\u202eabc", "e\u0301", "<b>bold</b>"]
)
def test_any_script_of_the_world_and_html_can_be_read_as_it_was_written(text: str) -> None:
    assert Page(render_markdown(f"# {text}\n\n{text}\n\n```\n{text}\n```")).text.count(text) == 3


@pytest.mark.parametrize("mark", ["```", "~~~"])
@pytest.mark.parametrize("end", ["", "\n{0}"], ids=["unclosed", "closed"])
def test_a_fence_is_a_code_block_before_it_is_closed(mark: str, end: str) -> None:
    page = Page(render_markdown(f"{mark}python\nx = '**a**'{end.format(mark)}"))

    assert [tag for tag, _attrs in page.tags if tag in {"pre", "strong", "button"}] == ["button", "pre"]
    assert "x = '**a**'" in page.text
    assert "python" in page.text


def test_code_is_coloured_by_classes() -> None:
    classes = {attrs.get("class") for tag, attrs in Page(render_block("```python\nx = 1\n```")).tags if tag == "span"}

    assert classes >= {"n", "o"}


@pytest.mark.parametrize("name", ["", "nolanguage", "<b>", "python {.x}"])
def test_any_name_of_a_language_shows_the_code(name: str) -> None:
    page = Page(render_block(f"```{name}\nx < 1 & y\n```"))

    assert "x < 1 & y" in page.text


def test_a_fence_in_a_fence_is_its_text() -> None:
    page = Page(render_markdown("````\n```python\nx = 1\n```\n````"))

    assert [tag for tag, _attrs in page.tags].count("pre") == 1
    assert "```python\nx = 1\n```" in page.text


def test_a_table_aligns_by_classes() -> None:
    page = Page(render_markdown("| a | b |\n| :-- | --: |\n| 1 | `2` |"))

    assert page.offences == []
    assert [attrs.get("class") for tag, attrs in page.tags if tag in {"th", "td"}] == ["align-start", "align-end"] * 2


def test_lists_nest_and_keep_their_number() -> None:
    page = Page(render_markdown("3. a\n\n   - b\n     - c\n\n4. d"))

    assert [tag for tag, _attrs in page.tags if tag in {"ol", "ul"}] == ["ol", "ul", "ul"]
    assert dict(page.tags)["ol"] == {"start": "3"}


def test_a_list_under_its_introduction_keeps_its_paragraphs() -> None:
    assert tags("Do this:\n1. a\n\n    more\n\n2. b").count("ol") == 1
    assert "pre" not in tags("Do this:\n1. a\n\n    more\n\n2. b")


def test_every_block_has_its_own_box() -> None:
    page = Page(render_markdown("One\n\nTwo"))

    assert [attrs for tag, attrs in page.tags if tag == "div"] == [{"class": "block"}] * 2


# --- Time

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "piece",
    [
        "word ",
        "Some *prose* with `code` and [a link](https://example.org).\n\n",
        "- item\n\n",
        "[",
        "![",
        "> ",
        "`",
        "*_",
        "\\",
        "<a ",
        " ",
        "\t",
        "```\n",
        "```python\nx = [1, 'a']\n```\n\n",
    ],
)
def test_a_megabyte_is_rendered_in_bounded_time(piece: str) -> None:
    text = piece * (MEGABYTE // len(piece))

    began = time.monotonic()
    render_markdown(text)

    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "text", ["[" * 29_000, "![" * 14_000, "|a" * 1500 + "\n" + "|-" * 1500 + "\n" + "x\n" * 11_000]
)
def test_a_block_that_is_hard_to_read_is_read_in_bounded_time(text: str) -> None:
    began = time.monotonic()
    render_block(text)

    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("maple", "'" * 5_000),  # one match over one line
        ("xquery", "a" * 5_000),
        ("perl", "<" * 100_000),
        ("yaml", "%" * 100_000),
        ("html+ng2", ("(" * 900 + "\n") * 20),  # read whole before the first token
        ("java", "a\n" * 9_000),  # the time grows with the square of words without punctuation
    ],
)
def test_no_lexer_holds_up_the_page(language: str, code: str) -> None:
    began = time.monotonic()
    html = render_block(f"```{language}\n{code}\n```")

    assert time.monotonic() - began < 5
    assert code in unescape(html)


@pytest.mark.parametrize("text", ["a" * MEGABYTE, "```\n" + "<b>\n" * (MEGABYTE // 4)], ids=["prose", "code"])
def test_a_huge_block_is_shown_whole_and_as_it_is(text: str) -> None:
    page = Page(render_block(text))

    assert page.text == text
    assert [tag for tag, _attrs in page.tags] == ["pre"]


# --- Rendered once


def test_a_block_is_rendered_once_and_no_more_is_held_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    real = rendering._render
    monkeypatch.setattr(rendering, "_render", lambda block: rendered.append(block) or real(block))
    monkeypatch.setattr(rendering, "_BLOCKS", BoundedCache(20_000))
    for number in (0, 0, *range(200), 199, 0):
        render_block(f"Block {number}")

    assert rendered == [*(f"Block {number}" for number in range(200)), "Block 0"]
