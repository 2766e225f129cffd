"""Writes of reminders and the Taskdoc, by the agent's tools and by people; and of MCP servers: their tools, problems
and secrets.

Errors are worded for people and agents: an agent reads them as the result of its call. `agents/tools/mcp.py` asks MCP
servers. `tools_read_at` is when a server was last asked, whatever the result; after a change of address it is null.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.agents.reads import SHARE_OF_ROOM
from dialogs.common.errors import DialogError
from dialogs.common.secrets import encrypt
from dialogs.common.text import storable
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of
from dialogs.models import Course, Dialog, McpServer, Reminder
from dialogs.models.reminder import Author
from dialogs.transcript.writes.dialog_row import current_course, lock, out_of_trash, save, written_here
from dialogs.transcript.writes.task_snapshot import observe
from health.tokens.corrected import likely_of

REMINDER_CHARS = 8_000
TASKDOC_CHARS = 100_000
MOST_REMINDERS = 50
SHORT_OF_ROOM = ("caution", "critical")


def _usable(dialog: Dialog, *, is_reminder: bool = True) -> Dialog:
    """The locked dialog, if its reminders or its Taskdoc can be written. A client's conversation has reminders where
    its key offers them, and no Taskdoc."""
    row = lock(dialog)
    if not (is_reminder and row.is_client_driven and row.client.offers_recall):
        written_here(row)
    return out_of_trash(row)


def _clean(content: str, *, most: int) -> str:
    text = storable(content).replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(text) > most:
        sizes = {"size": f"{len(text):,}", "most": f"{most:,}"}
        raise DialogError(_("The text has %(size)s characters, and at most %(most)s characters fit.") % sizes)
    return text


def _clean_reminder(content: str) -> str:
    text = _clean(content, most=REMINDER_CHARS)
    if not text:
        raise DialogError(_("A reminder needs a text."))
    return text


def _unchanged(version: int | None, current: int) -> None:
    """Raise if the text that was edited is no longer the stored one. None: the writer does not mind."""
    if version is not None and version != current:
        raise DialogError(_("It was changed meanwhile. Copy your text, look at the new one, and write again."))


def kept_reminder(row: Dialog, number: int) -> Reminder:
    """The reminder with this number. Raises DialogError, which names those that there are, where none has it."""
    found = Reminder.objects.filter(dialog=row, number=number, removed_at=None).first()
    if found is None:
        numbers = Reminder.objects.filter(dialog=row, removed_at=None).values_list("number", flat=True)
        listed = ", ".join(str(other) for other in numbers) or _("none")
        raise DialogError(
            _("There is no reminder %(number)s. There are: %(numbers)s.") % {"number": number, "numbers": listed}
        )
    return found


def _highest(row: Dialog, field: str) -> int:
    return Reminder.objects.filter(dialog=row).aggregate(highest=Max(field))["highest"] or 0


def _room(row: Dialog) -> None:
    if Reminder.objects.filter(dialog=row, removed_at=None).count() >= MOST_REMINDERS:
        raise DialogError(
            _("There are %(most)s reminders already. Remove or join some first.") % {"most": MOST_REMINDERS}
        )


def _fits(row: Dialog, text: str, author: Author, *, replacing: Reminder | None = None) -> None:
    """Raises where an agent's text would bring all reminders above their share of the room. Never for a person, for a
    text that is shorter than the one it replaces, or where the room is unknown."""
    guard = guard_of(row) if author == Author.AGENT else None
    if guard is None or guard.room <= 0:
        return
    kept = Reminder.objects.filter(dialog=row, removed_at=None).exclude(pk=replacing.pk if replacing else 0)
    new, old, *others = likely_of(counter_of(row.llm)).count(
        [text, replacing.content if replacing else "", *(one.content for one in kept)]
    )
    size, most = new + sum(others), int(SHARE_OF_ROOM * guard.room)
    if size > most and (replacing is None or new >= old):
        raise DialogError(
            _(
                "With this text all reminders would have about %(size)s tokens, and at most %(most)s fit, a quarter of "
                "the room. Write less, or shorten, join or remove others first."
            )
            % {"size": f"{size:,}", "most": f"{most:,}"}
        )


def _is_continuation(course: Course, author: Author) -> bool:
    return author == Author.AGENT and course.level in SHORT_OF_ROOM


@transaction.atomic
def add_reminder(*, dialog: Dialog, content: str, author: Author) -> Reminder:
    text = _clean_reminder(content)
    row = _usable(dialog)
    _room(row)
    _fits(row, text, author)
    course = current_course(row)
    reminder = Reminder.objects.create(
        dialog=row,
        number=_highest(row, "number") + 1,
        position=_highest(row, "position") + 1,
        content=text,
        author=author,
        course=course,
        is_continuation=_is_continuation(course, author),
    )
    if author == Author.AGENT:
        observe(row, text)
    save(row)
    return reminder


@transaction.atomic
def update_reminder(
    *, dialog: Dialog, number: int, content: str, author: Author, version: int | None = None
) -> Reminder:
    """Replace a reminder's text. `version` is the one that was edited: a newer one is not overwritten. The same text
    changes nothing, neither who wrote it nor when."""
    text = _clean_reminder(content)
    row = _usable(dialog)
    reminder = kept_reminder(row, number)
    _unchanged(version, reminder.version)
    if text == reminder.content:
        return reminder
    _fits(row, text, author, replacing=reminder)
    reminder.course = current_course(row)
    reminder.is_continuation = reminder.is_continuation or _is_continuation(reminder.course, author)
    reminder.content, reminder.author, reminder.version = text, author, reminder.version + 1
    reminder.save()
    save(row)
    return reminder


@transaction.atomic
def remove_reminder(*, dialog: Dialog, number: int) -> None:
    """Take a reminder out of the agent's sight. It can be restored."""
    row = _usable(dialog)
    reminder = kept_reminder(row, number)
    reminder.removed_at = timezone.now()
    reminder.save(update_fields=["removed_at"])
    save(row)


@transaction.atomic
def restore_reminder(*, dialog: Dialog, number: int) -> None:
    row = _usable(dialog)
    reminder = Reminder.objects.filter(dialog=row, number=number, removed_at__isnull=False).first()
    if reminder is None:
        raise DialogError(_("There is no removed reminder %(number)s.") % {"number": number})
    _room(row)
    reminder.removed_at, reminder.position = None, _highest(row, "position") + 1
    reminder.save(update_fields=["removed_at", "position"])
    save(row)


@transaction.atomic
def move_reminder(*, dialog: Dialog, number: int, up: bool) -> None:
    """Swap a reminder with its neighbour. At the end of the list nothing happens."""
    row = _usable(dialog)
    reminder = kept_reminder(row, number)
    kept = list(Reminder.objects.filter(dialog=row, removed_at=None))
    other = kept.index(reminder) + (-1 if up else 1)
    if not 0 <= other < len(kept):
        return
    # Positions may be equal in an imported dialog: number them anew.
    kept.remove(reminder)
    kept.insert(other, reminder)
    for position, kept_one in enumerate(kept, start=1):
        kept_one.position = position
    Reminder.objects.bulk_update(kept, ["position"])
    save(row)


@transaction.atomic
def write_taskdoc(*, dialog: Dialog, content: str, version: int | None = None) -> None:
    text = _clean(content, most=TASKDOC_CHARS)
    row = _usable(dialog, is_reminder=False)
    _unchanged(version, row.taskdoc_version)
    row.taskdoc, row.taskdoc_version = text, row.taskdoc_version + 1
    save(row, "taskdoc", "taskdoc_version")


@transaction.atomic
def record_tools(*, server: McpServer, tools: list[dict[str, Any]]) -> None:
    _write(server, tools=_storable(tools), tools_read_at=timezone.now(), problem="")


@transaction.atomic
def record_problem(*, server: McpServer, problem: str) -> None:
    """Record why the server could not be asked. Its earlier tools are kept: it may be back for the next call."""
    _write(server, tools_read_at=timezone.now(), problem=storable(problem))


@transaction.atomic
def forget_tools(*, server: McpServer) -> None:
    """Forget the server's tools: another program or address stands behind its name now."""
    _write(server, tools=[], tools_read_at=None, problem="")


@transaction.atomic
def set_secrets(*, server: McpServer, secrets: dict[str, str]) -> None:
    """Replace the server's stored secrets by these, encrypted."""
    _write(server, secrets_encrypted=encrypt(json.dumps(secrets)) if secrets else "")


def _write(server: McpServer, **fields: Any) -> None:
    """Save these columns only: an admin may be saving the others while the server is asked."""
    for name, value in fields.items():
        setattr(server, name, value)
    McpServer.objects.filter(pk=server.pk).update(**fields)


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
    return value
