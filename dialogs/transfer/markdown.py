"""The current branch of a dialog as a Markdown file for people. It is not read back."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt

from dialogs.models import Dialog, Message
from dialogs.models.message import Role
from dialogs.selectors.path import messages_by_id, read_tree

SENTINEL = "dominds-end-of-message"
# HTML on, because a reader's Markdown program may take it: an open comment would swallow what follows.
parser = MarkdownIt("commonmark", {"html": True})


def export_markdown(dialog: Dialog) -> str:
    path = read_tree(dialog.pk).path(dialog.current_leaf_id)
    messages = messages_by_id(path)
    head = [f"# {_one_line(str(dialog))}", _about(dialog)]
    return "\n\n".join([*head, *(_section(message, dialog) for message in messages)]) + "\n"


def _about(dialog: Dialog) -> str:
    date = f"{dialog.created_at:%Y-%m-%d}"
    words = _("A dialog with %(agent)s (%(llm)s), begun on %(date)s.")
    return "*" + words % {"agent": _one_line(dialog.agent.name), "llm": _one_line(dialog.llm.slug), "date": date} + "*"


def _section(message: Message, dialog: Dialog) -> str:
    speaker = _("You") if message.role == Role.USER else _one_line(dialog.agent.name)
    parts = [f"## {speaker} · {message.created_at:%Y-%m-%d %H:%M} UTC", contained(message.content)]
    if message.cut_short:
        parts.append("*" + _("The answer was cut short here.") + "*")
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    """For headings: no line ends, and no sign that Markdown would act on."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))


def contained(text: str) -> str:
    """The text, closed so that none of it can swallow what follows: an open fence gets its end.

    Whatever else stays open, such as an HTML comment, is shown as plain text in a fence of its own.
    """
    text = text.rstrip()
    if _is_closed(text):
        return text
    fence = _open_fence(text)
    if fence and _is_closed(f"{text}\n{fence}"):
        return f"{text}\n{fence}"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    wall = "`" * max(3, longest + 1)
    return f"{wall}text\n{text}\n{wall}"


def _is_closed(text: str) -> bool:
    """Whether a paragraph written after the text is still a paragraph of its own."""
    tokens = parser.parse(f"{text}\n\n{SENTINEL}")
    return tokens[-1].type == "paragraph_close" and tokens[-1].level == 0 and tokens[-2].content == SENTINEL


def _open_fence(text: str) -> str:
    last = parser.parse(text)[-1:]
    return last[0].markup if last and last[0].type == "fence" else ""
