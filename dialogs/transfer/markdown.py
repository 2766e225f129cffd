"""The current branch of a dialog as a Markdown file for people. It is not read back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from dialogs.models import ClientConversation, Course, Dialog, Message, RemediationPrompt, ToolCall
from dialogs.selectors.attached import Attachment, attachments_of
from dialogs.selectors.path import messages_by_id, read_tree
from dialogs.speakers import speaker
from dialogs.standing_rules import holding, load
from dialogs.transfer.markdown_calls import told_call
from dialogs.transfer.markdown_compactions import compactions_by_leaf, told_compaction
from dialogs.transfer.markdown_text import contained, one_line


def export_markdown(dialog: Dialog) -> str:
    parts = [f"# {one_line(str(dialog))}", _about(dialog), *_notebook(dialog), *_transcript(dialog)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _about(dialog: Dialog) -> str:
    date = f"{dialog.created_at:%Y-%m-%d}"
    words = _("A dialog with %(agent)s (%(llm)s), begun on %(date)s.")
    return "*" + words % {"agent": one_line(dialog.agent.name), "llm": one_line(dialog.llm.slug), "date": date} + "*"


def _notebook(dialog: Dialog) -> Iterator[str]:
    """What the agent sees in every course."""
    client = ClientConversation.objects.filter(dialog=dialog).first()
    if client and client.instructions.strip():
        yield "## " + _("Instructions of the client")
        yield contained(client.instructions)
    if dialog.taskdoc.strip():
        yield "## " + _("Taskdoc")
        yield contained(dialog.taskdoc)
    rules = holding(load(dialog.standing_rules))
    if rules:
        yield "## " + _("Standing rules")
        yield contained("\n".join(f"- {rule}" for rule in rules))
    reminders = dialog.reminders.filter(removed_at=None)
    if reminders:
        yield "## " + _("Reminders")
    for reminder in reminders:
        yield "### " + _("Reminder %(number)s") % {"number": reminder.number}
        yield contained(reminder.content)


def _transcript(dialog: Dialog) -> Iterator[str]:
    courses = {course.pk: course for course in dialog.courses.all()}
    calls = _calls(dialog)
    runs = compactions_by_leaf(dialog)
    notices = dict(RemediationPrompt.objects.filter(dialog=dialog).values_list("message_id", "notice"))
    told = {call.result_message_id for made in calls.values() for call in made}
    shown: int | None = None
    messages = messages_by_id(read_tree(dialog.pk).path(dialog.current_leaf_id))
    attached = attachments_of(messages)
    for message in messages:
        if message.course_id != shown:
            shown = message.course_id
            yield _course(courses[shown])
        # A result is told where its call is.
        if message.pk not in told:
            yield from _section(message, dialog, notices.get(message.pk, ""))
            yield from (_attached(one) for one in attached.get(message.pk, ()))
        for call in calls[message.pk]:
            yield from told_call(call)
        for run in runs[message.pk]:
            yield told_compaction(run)


def _calls(dialog: Dialog) -> defaultdict[int, list[ToolCall]]:
    """By the message that made them."""
    calls: defaultdict[int, list[ToolCall]] = defaultdict(list)
    for call in ToolCall.objects.filter(message__dialog=dialog).select_related("question", "result_message"):
        calls[call.message_id].append(call)
    return calls


def _course(course: Course) -> str:
    words = _("Course %(number)s · opened by: %(opened_by)s · %(moment)s")
    named = {
        "number": course.number,
        "opened_by": course.get_opened_by_display(),
        "moment": _moment(course.opened_at),
    }
    return "## " + words % named


def _section(message: Message, dialog: Dialog, notice: str) -> Iterator[str]:
    yield f"### {one_line(speaker(message, dialog.agent))} · {_moment(message.created_at)}"
    yield contained(message.content)
    if notice:
        yield "*" + _("Sent with it automatically:") + "*"
        yield contained(notice)
    if message.cut_short:
        yield "*" + _("The answer was cut short here.") + "*"


def _attached(one: Attachment) -> str:
    facts = filter(None, (one.name, one.media_type, one.address))
    return "*" + _("Attached, and not in this file: %(what)s") % {"what": one_line(" · ".join(facts))} + "*"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
