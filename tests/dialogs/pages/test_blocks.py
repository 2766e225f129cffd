"""Where one block of Markdown ends and the next begins, and that a growing text moves no finished block."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialogs.pages.rendering import split_blocks

# Everything that decides where a block begins or ends, and the halves of it that a stream may stop at.
PIECES = ("a", " ", "  ", "    ", "\t", "\n", "\n\n", "-", "- ", "1", "1. ", ")", "```", "~~~", "````", "`", "js", "> ")
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@pytest.mark.parametrize(
    "whole",
    [
        "```\na\n\nb\n```",
        "~~~\na\n\n```\n\nb\n~~~",
        "````\n```\n\na\n```\n\nb\n````",
        "```python\na\n\nstill open",
        "```\na\n\n``` not the end\n\nb\n```",
        "Text right before\n```\na\n\nb\n```",
        "```markdown\n1. Run\n\n    ```bash\n    make\n    ```\n\n2. Done\n```",
        "- a\n\n  ```\n  b\n\n  c\n  ```\n\n- d",
        "- ```\n  a\n\n  b\n  ```\n- c",
        "1. a\n\n   more\n\n2. b",
        "These:\n1. a\n\n    more\n2. b\n\n3. c",
        "    code\n\n    more code",
    ],
)
def test_a_block_is_not_split_inside(whole: str) -> None:
    assert split_blocks(f"Before\n\n{whole}") == ["Before", whole]


@pytest.mark.parametrize("nothing", ["", "\n", " \n\t\n"])
def test_nothing_has_no_blocks(nothing: str) -> None:
    assert split_blocks(nothing) == []


@pytest.mark.parametrize(
    "blocks",
    [
        ["# One", "Two\nlines", "Three"],
        ["```\na\n\nb\n```", "After"],
        ["~~~\na\n\nb\n~~~~", "After"],
        ["```\na\n\nb\n   ```  ", "After"],
        ["- ```\n  a\n  ```\n- b", "Text", "```\nc\n\nd\n```"],  # a fence that begins an item ends there
        ["- a\n\n- b", "Text"],
    ],
)
@pytest.mark.parametrize("blank", ["\n\n", "\n\n\n"])
def test_blank_lines_part_blocks(blocks: list[str], blank: str) -> None:
    assert split_blocks(blank.join(blocks)) == blocks


@settings(max_examples=500, deadline=None)
@given(MARKDOWN, MARKDOWN)
def test_more_text_changes_no_block_but_the_last(before: str, more: str) -> None:
    finished = split_blocks(before)[:-1]

    assert split_blocks(before + more)[: len(finished)] == finished


@pytest.mark.parametrize(
    ("before", "more"),
    [("- a\n\n1", ". b"), ("- a\n\n*", "*b**"), ("a\n\n``", "`\nb\n\nc"), ("```\na\n``", "`\n\nb"), ("- a\n\n ", " b")],
)
def test_half_a_mark_decides_nothing_yet(before: str, more: str) -> None:
    finished = split_blocks(before)[:-1]

    assert split_blocks(before + more)[: len(finished)] == finished


@settings(max_examples=200, deadline=None)
@given(MARKDOWN)
def test_blocks_lose_nothing_but_blank_lines(text: str) -> None:
    lines = [line for block in split_blocks(text) for line in block.split("\n") if line.strip()]

    assert lines == [line for line in text.split("\n") if line.strip()]
