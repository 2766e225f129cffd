"""The Markdown export: readable, and no message can swallow the next."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from dialogs.models import Dialog, Message
from dialogs.transfer import export_markdown
from dialogs.transfer.markdown import contained


def test_the_current_branch_is_told_in_order(full_dialog: Dialog) -> None:
    text = export_markdown(full_dialog)

    assert text.startswith("# The box\n\n*A dialog with Helper (scripted/tiny)")
    assert text.index("## You") < text.index("*really*") < text.index("## Helper") < text.index("print(")
    assert "A cat, and" not in text


def test_an_answer_that_was_stopped_says_so(full_dialog: Dialog) -> None:
    full_dialog.current_leaf = Message.objects.get(content="A cat, and")

    assert "*The answer was cut short here.*" in export_markdown(full_dialog)


@pytest.mark.parametrize(
    "content",
    [
        "plain",
        "```python\nprint(1)",  # an open fence
        "~~~~\ncode",
        "- item\n  ```\n  code",  # an open fence in a list ends with the list
        "<!-- a comment that never ends",
        "<script>\nalert(1)",
        "<pre>\n```\nboth",
        "> quote\n> ```\n> code",
        "`````\n```\ninner",
        "",
    ],
)
def test_a_message_never_swallows_the_next(content: str) -> None:
    text = f"{contained(content)}\n\n## Helper\n"

    headings = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "heading_open"]
    assert [heading.level for heading in headings] == [0]


def test_an_open_fence_is_closed_with_its_own_kind() -> None:
    assert contained("~~~~\ncode") == "~~~~\ncode\n~~~~"


def test_a_title_cannot_break_out_of_its_heading(full_dialog: Dialog) -> None:
    full_dialog.title = "a\n## b <img>"

    assert export_markdown(full_dialog).splitlines()[0] == r"# a \#\# b \<img\>"
