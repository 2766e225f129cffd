"""A message in blocks is the message again when they are joined, and fences keep their labels."""

from __future__ import annotations

import pytest

from health.compaction.reading.code import blocks, joined


def labels(text: str) -> list[str | None]:
    return [block.label for block in blocks(text)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "a\n```python\nx\n```\nb\n",
        "```\n",
        "```",
        "a\n\n~~~ log\nx\n~~~",
        "```py\r\nx\r\n```\r\n",
        "````md\n```\nx\n```\n````\n",
        "\n\n\n",
    ],
)
def test_the_blocks_of_a_text_are_the_text(text: str) -> None:
    assert joined(blocks(text)) == text


def test_prose_and_fences_come_in_order_with_their_labels() -> None:
    assert labels("a\n```python\nx\n```\nb\n```\ny\n```") == [None, "python", None, ""]


def test_a_fence_may_show_another_fence() -> None:
    assert labels("````md\n```\nx\n```\n````\nb") == ["md", None]


def test_a_fence_left_open_runs_to_the_end() -> None:
    assert [block.body for block in blocks("a\n```py\nx\ny")] == ["a\n", "x\ny"]


def test_marks_within_a_line_are_no_fence() -> None:
    assert labels("use ```x``` here\n```a `b`\n") == [None]


def test_the_closing_marks_keep_a_line_of_their_own() -> None:
    (fence,) = blocks("```py\nx = 1\n\n```\n")

    assert joined([fence.saying("x = 1")]) == "```py\nx = 1\n```\n"
