"""The Markdown export: readable, and no message can swallow the next."""

from __future__ import annotations

from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from dialogs.models import Dialog, Message, Question
from dialogs.transfer import export_markdown
from dialogs.transfer.markdown import contained, fenced
from tests.dialogs.transfer.compactions import a_run_at


def test_the_current_branch_is_told_in_order(full_dialog: Dialog) -> None:
    text = export_markdown(full_dialog)

    assert text.startswith("# The box\n\n*A dialog with Helper (scripted/tiny)")
    assert text.index("## You") < text.index("*really*") < text.index("## Helper") < text.index("print(")
    assert "A cat, and" not in text


def test_an_answer_that_was_stopped_says_so(full_dialog: Dialog) -> None:
    full_dialog.current_leaf = Message.objects.get(content="A cat, and")

    assert "*The answer was cut short here.*" in export_markdown(full_dialog)


def headings(text: str) -> list[str]:
    """What a Markdown program takes for a heading, with its level."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [f"{token.markup} {inside.content}" for token, inside in pairwise(tokens) if token.type == "heading_open"]


def test_courses_are_headings_with_what_was_said_below_them(working_dialog: Dialog) -> None:
    found = [heading.split(" · 20")[0] for heading in headings(export_markdown(working_dialog))]

    assert found == [
        "# The box",
        "## Taskdoc",
        "# The box",  # the Taskdoc's own
        "## Standing rules",
        "## Reminders",
        "### Reminder 1",
        "## Course 1 · opened by: start",
        "### You",
        "### Helper",
        "### You",
        "### Helper",
        "### Automatic message",
        "### Helper",
        "## Course 2 · opened by: agent",
        "### Automatic message",
        "### Helper",
    ]


def test_a_notice_is_told_apart_from_what_was_typed_and_a_removed_reminder_is_not_told(working_dialog: Dialog) -> None:
    text = export_markdown(working_dialog)

    assert "Look inside.\n\n*Sent with it automatically:*\n\n[System notice] 3 more\n\n" in text
    assert "Removed." not in text


def test_calls_questions_and_compactions_are_told_where_they_happened(working_dialog: Dialog) -> None:
    """A call with its arguments and its whole result, a question with its answer."""
    text = export_markdown(working_dialog)

    told = '**Tool call:** read\\_file · done\n\n```json\n{"x": 1}\n```\n\n**Result:**\n\n'
    assert f"{told}````text\n```\na cat\n```\n````\n\n" in text
    assert "Too large." not in text
    assert "**Tool call:** clear\\_mind · interrupted" in text
    asked = "**Question:**\n\nWhich *one*?\n\n"
    assert f"{asked}- left\n- right\n\n**Answer:**\n\nThe left one.\n\n" in text
    assert f"{asked}*withdrawn*" in text
    first = "*— Context compacted · ≈4,500 → ≈1,500 tokens · before sending —*"
    assert f"Look inside.\n\n*Sent with it automatically:*\n\n[System notice] 3 more\n\n{first}\n\n### " in text
    assert "*— Compaction failed · by hand —*" in text
    assert text.endswith("On I go.\n\n*— Compaction undone · reset by hand —*\n")


def test_an_answer_given_by_a_message_is_told_as_that(working_dialog: Dialog) -> None:
    Question.objects.update(status="answered", answer="")

    assert "*Answered by the message that follows.*" in export_markdown(working_dialog)


def test_a_compaction_that_changed_nothing_is_not_told(working_dialog: Dialog) -> None:
    a_run_at(working_dialog, 14, status="cancelled")

    assert "cancelled" not in export_markdown(working_dialog)


@pytest.mark.parametrize("text", ["plain", "```\ncode\n```", "`````", "~~~", "a\n\n    ```` x", ""])
def test_a_fence_ends_only_where_it_ends(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(fenced(text, "json"))

    assert [(token.type, token.content) for token in tokens] == [("fence", f"{text}\n")]


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

    found = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "heading_open"]
    assert [heading.level for heading in found] == [0]


@pytest.mark.parametrize(
    "content",
    [
        "<details>\n<summary>Log</summary>\n\nrows",
        "<details><summary>Log</summary>",
        "see <details/>",
        "</details><details>",  # an end that ends nothing
        "<details\nopen",  # a tag that never ends
        "a <textarea> in words",
        "1. <b>bold",
    ],
)
def test_html_that_a_message_leaves_open_swallows_nothing(content: str) -> None:
    assert contained(content) == fenced(content, "text")


@pytest.mark.parametrize(
    "content",
    [
        "<details>\n<summary>Log</summary>\n\nrows\n\n</details>",
        "a<br>b <b>bold</b>",
        "`<details>`",
        "a < b & c > d",
        "</b>",
    ],
)
def test_html_that_is_closed_stays(content: str) -> None:
    assert contained(content) == content


def test_an_open_fence_is_closed_with_its_own_kind() -> None:
    assert contained("~~~~\ncode") == "~~~~\ncode\n~~~~"


def test_a_title_cannot_break_out_of_its_heading(full_dialog: Dialog) -> None:
    full_dialog.title = "a\n## b <img>"

    assert export_markdown(full_dialog).splitlines()[0] == r"# a \#\# b \<img\>"
