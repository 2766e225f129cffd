"""Tools that steer the dialog itself: end the course, ask the person, call the goal reached.

`clear_mind` and `ask_human` are performed by the round (`run_tools.py`): one comes last, the other waits.
"""

from __future__ import annotations

from dialogs.agents.tools.base import Arguments, DialogTool, ToolError, schema
from dialogs.models import Dialog
from dialogs.transcript.reads.tool_calls import ASK_HUMAN, CLEAR_MIND
from dialogs.turns.writes.autonomous import finish_run

TEXT = {"type": "string", "minLength": 1}


def by_the_round(_dialog: Dialog, _arguments: Arguments) -> str:
    raise ToolError("This tool cannot be called here.")


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
GOAL_DONE = DialogTool(
    name="goal_done",
    description="Say that your goal is reached.",
    parameters=schema(summary=TEXT),
    perform=goal_done,
)
