"""Tools for what survives a course (reminders, the Taskdoc, a look back into earlier courses), and those that steer the
dialog: end the course, ask the person, call the goal reached.

`clear_mind` and `ask_human` are performed by the round (`run_tools.py`): one comes last, the other waits.
"""

from __future__ import annotations

from dialogs.agents import writes
from dialogs.agents.tools.base import Arguments, DialogTool, ToolError, dialog_tool, schema
from dialogs.models import Dialog, Reminder
from dialogs.models.dialog import Author
from dialogs.transcript.reads.courses import course_page
from dialogs.transcript.reads.tool_calls import ASK_HUMAN, CLEAR_MIND
from dialogs.transcript.writes.dialog_row import current_course
from dialogs.turns.writes.autonomous import finish_run
from dialogs.turns.writes.remediation import mark_curated

TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "integer", "minimum": 1}


@dialog_tool("Note what you must still know in the next course; several lines are welcome.", content=TEXT)
def add_reminder(dialog: Dialog, arguments: Arguments) -> str:
    added = writes.add_reminder(dialog=dialog, content=arguments["content"], author=Author.AGENT)
    mark_curated(current_course(dialog))
    return f"Reminder {added.number} is added."


@dialog_tool("Replace a reminder's text.", number=NUMBER, content=TEXT)
def update_reminder(dialog: Dialog, arguments: Arguments) -> str:
    number = arguments["number"]
    before = Reminder.objects.filter(dialog=dialog, number=number).values_list("version", flat=True).first()
    changed = writes.update_reminder(dialog=dialog, number=number, content=arguments["content"], author=Author.AGENT)
    if changed.version == before:
        return f"Reminder {number} says just that already."
    mark_curated(current_course(dialog))
    return f"Reminder {number} is updated."


@dialog_tool("Remove a reminder.", number=NUMBER)
def delete_reminder(dialog: Dialog, arguments: Arguments) -> str:
    writes.remove_reminder(dialog=dialog, number=arguments["number"])
    return f"Reminder {arguments['number']} is removed."


@dialog_tool("Replace the Taskdoc, the task's standing description.", content={"type": "string"})
def update_taskdoc(dialog: Dialog, arguments: Arguments) -> str:
    writes.write_taskdoc(dialog=dialog, content=arguments["content"])
    return "The Taskdoc is written."


@dialog_tool("Read all of a reminder that is shown shortened.", number=NUMBER)
def read_reminder(dialog: Dialog, arguments: Arguments) -> str:
    return writes.kept_reminder(dialog, arguments["number"]).content


@dialog_tool("Read an earlier course, page by page.", course=NUMBER, page=NUMBER | {"optional": True})
def read_course(dialog: Dialog, arguments: Arguments) -> str:
    page = course_page(dialog, number=arguments["course"], page=arguments.get("page", 1))
    if page is None:
        raise ToolError("There is no such course before this one, or it has no such page.")
    return page


REMINDERS = (add_reminder, update_reminder, delete_reminder, update_taskdoc)


def by_the_round(_dialog: Dialog, _arguments: Arguments) -> str:
    raise ToolError("This tool cannot be called here.")


@dialog_tool("Say that your goal is reached.", summary=TEXT)
def goal_done(dialog: Dialog, arguments: Arguments) -> str:
    if not finish_run(dialog, summary=arguments["summary"]):
        raise ToolError("No goal is being worked on.")
    return "Noted. Now tell the person in a few words what came of it."


CLEAR = DialogTool(
    name=CLEAR_MIND,
    description=(
        "Begin a new course: messages leave your context, reminders and Taskdoc stay. "
        "reminder_content is added as a reminder."
    ),
    parameters=schema(reminder_content=TEXT | {"optional": True}),
    perform=by_the_round,
)
ASK = DialogTool(
    name=ASK_HUMAN,
    description="Ask the person what only they can decide, and wait for the answer.",
    parameters=schema(question=TEXT, choices={"type": "array", "items": TEXT, "maxItems": 8, "optional": True}),
    perform=by_the_round,
)
