"""The current branch of a dialog as a Markdown file for people. It cannot be imported."""

from __future__ import annotations

import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser

from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from markdown_it import MarkdownIt

from dialogs.compaction.reads.compaction_rows import HEAVY, CompactionRow
from dialogs.models import ClientConversation, Course, Dialog, Message, Question, RemediationPrompt, ToolCall
from dialogs.transcript.attachments import Attachment, attachments_of
from dialogs.transcript.reads.path import messages_by_id, read_tree
from dialogs.transcript.standing_rules import holding, load
from dialogs.transcript.views import speaker
from health.models import CompactionRun


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
        # A result is written below its call.
        if message.pk not in told:
            yield from _section(message, dialog, notices.get(message.pk, ""))
            yield from (_attached(one) for one in attached.get(message.pk, ()))
        for call in calls[message.pk]:
            yield from call_lines(call)
        for run in runs[message.pk]:
            yield compaction_line(run)


def _calls(dialog: Dialog) -> defaultdict[int, list[ToolCall]]:
    """The tool calls, by the message that made them."""
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


def call_lines(call: ToolCall) -> Iterator[str]:
    if hasattr(call, "question"):
        yield from question_lines(call.question)
        return
    yield "**" + _("Tool call:") + f"** {one_line(call.name)} · {call.get_status_display()}"
    if call.arguments.strip():
        yield fenced(call.arguments, "json")
    if result := _result(call):
        yield "**" + _("Result:") + "**"
        yield fenced(result, "text")


def _result(call: ToolCall) -> str:
    """The complete result, even where it is withheld from the agent."""
    return call.result_message.content if call.result_message else call.result


def question_lines(question: Question) -> Iterator[str]:
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


Status = CompactionRun.Status
# Runs in these states get a line.
TOLD = (Status.APPLIED, Status.UNDONE, Status.FAILED)


def compactions_by_leaf(dialog: Dialog) -> defaultdict[int, list[CompactionRun]]:
    """By the newest message before each of them."""
    found: defaultdict[int, list[CompactionRun]] = defaultdict(list)
    for run in CompactionRun.objects.filter(dialog=dialog, status__in=TOLD).defer(*HEAVY).order_by("pk"):
        found[run.leaf_id].append(run)
    return found


def compaction_line(run: CompactionRun) -> str:
    """One line about a compaction. Both sizes are estimates."""
    row = CompactionRow(run=run)
    parts = [str(row.title), str(run.get_trigger_display())]
    if row.has_sizes and run.estimated_before is not None and run.estimated_after is not None:
        parts.insert(1, f"≈{run.estimated_before:,} → ≈{run.estimated_after:,} {pgettext('unit', 'tokens')}")
    return f"*— {' · '.join(parts)} —*"


# Random, so that no text contains it.
SENTINEL = secrets.token_hex()
# With HTML, since other Markdown programs render it: an open comment or element would swallow what follows.
parser = MarkdownIt("commonmark", {"html": True})
NEVER_CLOSED = (
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"),
)


def one_line(text: str) -> str:
    """A text on one line, with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))


def contained(text: str) -> str:
    """The text, so that it cannot swallow what follows: an open fence is closed; a text with anything else left open,
    such as an HTML element, is put into a fence as plain text."""
    text = text.rstrip()
    if _is_closed(text):
        return text
    fence = _open_fence(text)
    if fence and _is_closed(f"{text}\n{fence}"):
        return f"{text}\n{fence}"
    return fenced(text, "text")


def fenced(text: str, kind: str) -> str:
    """The text in a fence that is longer than any fence in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    wall = "`" * max(3, longest + 1)
    return f"{wall}{kind}\n{text.rstrip()}\n{wall}"


def _is_closed(text: str) -> bool:
    """Would a paragraph after the text be a paragraph of its own?"""
    return _Closed(parser.render(f"{text}\n\n{SENTINEL}")).is_closed


class _Closed(HTMLParser):
    """Parses a page: `is_closed` if the sentinel is in a paragraph and in no other element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.open: Counter[str] = Counter()
        self.is_closed = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open[tag] += tag not in NEVER_CLOSED

    # A browser reads `<details/>` as `<details>`.
    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        # An end tag without a start tag is ignored.
        self.open[tag] = max(0, self.open[tag] - 1)

    def handle_data(self, data: str) -> None:
        if data == SENTINEL:
            self.is_closed = self.open.total() == self.open["p"] == 1


def _open_fence(text: str) -> str:
    last = parser.parse(text)[-1:]
    return last[0].markup if last and last[0].type == "fence" else ""
