"""Whatever happens in a dialog: a browser that applies every fragment shows what a new one would show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.models import Generation
from dialogs.pages.live_view import Fragment, PageDiff, RenderedRow, Rendering
from dialogs.pages.reads.rows import LiveRow
from dialogs.pages.rendering import render_block, split_blocks
from tests.dialogs.dom import Page

PIECES = ("word ", "**", "\n", "\n\n", "```", "- ", "1. ", "# ", "<b>", "&amp;", "> ", "    ", "汉字", "---")
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=25)
ROWS = st.lists(st.sampled_from("abcde"), unique=True, max_size=5).flatmap(
    lambda ids: st.fixed_dictionaries({dom_id: st.sampled_from(("1", "2")) for dom_id in ids})
)


def row(dom_id: str, key: str, inner: str = "") -> RenderedRow:
    return RenderedRow(dom_id, key, Fragment(lambda: f'<article id="{dom_id}">{inner or key}</article>'))


def rendering(rows: dict[str, str], *, answer: int = 0, text: str = "") -> Rendering:
    """Rows by id with their keys; with `answer`, also that generation's live row as far as it is recorded."""
    rendered = [row(dom_id, key) for dom_id, key in rows.items()]
    live = LiveRow(generation=Generation(pk=answer, partial_text=text)) if answer else None
    if live:
        blocks = "".join(f'<div id="live-block-{at}">{block}</div>' for at, block in enumerate(html_of(text)))
        rendered.append(row("live", live.key, f'<div id="live-blocks">{blocks}</div>'))
    html = "".join(found.html for found in rendered)
    return Rendering(
        version=1,
        transcript=Fragment(lambda: f'<section id="transcript"><div id="rows">{html}</div></section>'),
        rows=tuple(rendered),
        parts=('<div id="meter"></div>',),
        live=live,
    )


def html_of(text: str) -> list[str]:
    return [str(render_block(block)) for block in split_blocks(text)]


def shown(rendering: Rendering) -> Page:
    page = Page()
    page.apply(rendering.transcript.html)
    return page


@given(st.lists(ROWS, min_size=1, max_size=6))
def test_rows_come_and_go_and_move_as_they_do_in_the_dialog(states: list[dict[str, str]]) -> None:
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(rendering(states[0])))

    for state in states[1:]:
        page.apply(screen.update(rendering(state)))

        assert list(page.rows.items()) == list(shown(rendering(state)).rows.items())


@given(TEXTS, st.data())
def test_a_growing_answer_looks_like_the_whole_of_it(pieces: list[str], data: st.DataObject) -> None:
    recorded = data.draw(st.integers(0, len(pieces)))
    started = rendering({"question": "1"}, answer=1, text="".join(pieces[:recorded]))
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(started))

    for count in range(recorded, len(pieces) + 1):
        page.apply(screen.stream(text="".join(pieces[:count]), reasoning=""))

    assert list(page.blocks.values()) == html_of("".join(pieces))


@given(TEXTS, st.data())
def test_an_answer_that_comes_in_overlapping_pieces_looks_like_the_whole_of_it(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(rendering({"question": "1"}, answer=1)))

    for end in (*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))), len(text)):
        at = data.draw(st.integers(0, len(screen.text)))
        page.apply(screen.stream(text=text[at:end], reasoning=text[at:end], at=at, thought_at=at))

    assert list(page.blocks.values()) == html_of(text)
    assert screen.reasoning == text


def test_thoughts_that_grow_are_sent_once() -> None:
    screen = PageDiff()
    screen.whole(rendering({}, answer=1))
    screen.stream(text="", reasoning="First this, ")

    sent = screen.stream(text="", reasoning="then <that>.", thought_at=len("First this, "))

    assert sent == '<div hx-swap-oob="beforeend:#live-reasoning">then &lt;that&gt;.</div>'


def test_a_row_that_every_tab_has_is_not_rendered_again() -> None:
    made: list[str] = []
    tabs = [PageDiff(), PageDiff()]
    for tab in tabs:
        tab.whole(rendering({"a": "1"}))
    rows = tuple(
        RenderedRow(dom_id, "1", Fragment(lambda dom_id=dom_id: made.append(dom_id) or f"<p>{dom_id}</p>"))  # type: ignore[misc]
        for dom_id in "ab"
    )

    sent = {tab.update(replace(rendering({"a": "1"}), rows=rows)) for tab in tabs}

    assert made == ["b"]
    assert sent == {'<div hx-swap-oob="beforeend:#rows"><p>b</p></div>'}


@given(TEXTS)
def test_a_finished_block_is_never_sent_again(pieces: list[str]) -> None:
    screen = PageDiff()
    screen.whole(rendering({}, answer=1))

    for count in range(1, len(pieces) + 1):
        before = len(screen.blocks)
        sent = screen.stream(text="".join(pieces[:count]), reasoning="")

        assert not any(f'id="live-block-{at}"' in sent for at in range(before - 1))


@given(st.lists(TEXTS.map("".join), min_size=1, max_size=5))
def test_states_that_do_not_follow_from_each_other_are_shown_all_the_same(texts: list[str]) -> None:
    """A second worker starts the answer anew, and its text shares nothing with what was shown."""
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(rendering({}, answer=1)))

    for text in texts:
        page.apply(screen.stream(text=text, reasoning=""))

        assert list(page.blocks.values()) == html_of(text)


@given(TEXTS, TEXTS)
def test_another_try_replaces_the_blocks_of_the_one_before(first: list[str], second: list[str]) -> None:
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(rendering({"question": "1"}, answer=1)))
    page.apply(screen.stream(text="".join(first), reasoning=""))

    page.apply(screen.update(rendering({"question": "1"}, answer=2)))
    page.apply(screen.stream(text="".join(second), reasoning=""))

    assert list(page.blocks.values()) == html_of("".join(second))


@pytest.mark.parametrize("change", [{"question": "2"}, {"question": "1", "queued": ""}])
def test_what_happens_beside_a_live_answer_leaves_its_blocks_alone(change: dict[str, str]) -> None:
    screen, page = PageDiff(), Page()
    page.apply(screen.whole(rendering({"question": "1"}, answer=1)))
    page.apply(screen.stream(text="One.\n\nTwo", reasoning=""))

    page.apply(screen.update(rendering(change, answer=1)))
    page.apply(screen.stream(text="One.\n\nTwo.", reasoning=""))

    assert list(page.blocks.values()) == html_of("One.\n\nTwo.")


def test_what_has_not_changed_is_not_sent() -> None:
    screen = PageDiff()
    screen.whole(rendering({"a": "1", "b": "1"}))

    sent = screen.update(rendering({"a": "1", "b": "2"}))

    assert 'id="b"' in sent
    assert 'id="a"' not in sent


def test_rows_that_moved_bring_the_whole_transcript() -> None:
    screen = PageDiff()
    screen.whole(rendering({"a": "1", "b": "1"}))

    assert 'id="transcript"' in screen.update(rendering({"b": "1", "a": "1"}))
