"""One tool call in the Markdown file: its name, arguments and result; or what it asked the person."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from dialogs.models import Question, ToolCall
from dialogs.transfer.markdown_text import contained, fenced, one_line


def told_call(call: ToolCall) -> Iterator[str]:
    if hasattr(call, "question"):
        yield from _told_question(call.question)
        return
    yield "**" + _("Tool call:") + f"** {one_line(call.name)} · {call.get_status_display()}"
    if call.arguments.strip():
        yield fenced(call.arguments, "json")
    if result := _result(call):
        yield "**" + _("Result:") + "**"
        yield fenced(result, "text")


def _result(call: ToolCall) -> str:
    """Whole, even where it is withheld from the agent."""
    return call.result_message.content if call.result_message else call.result


def _told_question(question: Question) -> Iterator[str]:
    yield "**" + _("Question:") + "**"
    yield contained(question.text)
    if question.choices:
        yield "\n".join(f"- {one_line(choice)}" for choice in question.choices)
    if question.status == Question.Status.ANSWERED and question.answer:
        yield "**" + _("Answer:") + "**"
        yield contained(question.answer)
    elif question.status == Question.Status.ANSWERED:
        yield "*" + _("Answered by the message that follows.") + "*"
    else:
        yield f"*{question.get_status_display()}*"
