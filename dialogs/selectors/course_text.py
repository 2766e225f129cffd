"""An earlier course as plain text in pages, for the agent that no longer sees it."""

from __future__ import annotations

from dialogs.models import Dialog, Message
from dialogs.models.message import Role
from dialogs.selectors.path import messages_by_id, read_tree

# About a thousand tokens: small enough for a small window.
COURSE_PAGE_CHARS = 4_000
WORDS = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "tool result", Role.SYSTEM: "system message"}


def course_page(dialog: Dialog, *, number: int, page: int) -> str | None:
    """One page of an earlier course on the current branch, with its number and theirs; None where there is none."""
    text = _text(dialog, number)
    pages = [text[start : start + COURSE_PAGE_CHARS] for start in range(0, len(text), COURSE_PAGE_CHARS)]
    if not 1 <= page <= len(pages):
        return None
    return f"Course {number}, page {page} of {len(pages)}:\n\n{pages[page - 1]}"


def _text(dialog: Dialog, number: int) -> str:
    path = read_tree(dialog.pk).path(dialog.current_leaf_id)
    if dialog.current_leaf is None or dialog.current_leaf.course.number == number:
        return ""
    inside = set(Message.objects.filter(pk__in=path, course__number=number).values_list("pk", flat=True))
    messages = messages_by_id(message_id for message_id in path if message_id in inside)
    return "\n\n".join(f"[{WORDS[Role(m.role)]}]\n{m.content.strip()}" for m in messages if m.content.strip())
