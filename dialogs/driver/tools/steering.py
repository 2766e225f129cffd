"""Tools that steer the dialog itself: end the course, ask the person, call the goal reached.

`clear_mind` and `ask_human` are performed by the round (`run_tools.py`): one comes last, the other waits.
"""

from __future__ import annotations

from dialogs.driver.tools.base import Arguments, DialogTool, ToolError, schema
from dialogs.models import Dialog
from dialogs.selectors.tool_calls import ASK_HUMAN, CLEAR_MIND
from dialogs.services.autonomous import finish_run

TEXT = {"type": "string", "minLength": 1}


def by_the_round(_dialog: Dialog, _arguments: Arguments) -> str:
    raise ToolError("This tool cannot be called here.")


def goal_done(dialog: Dialog, arguments: Arguments) -> str:
    if not finish_run(dialog, summary=arguments["summary"]):
        raise ToolError("No goal is being worked on.")
    return "Noted. Now tell the person in a few words what came of it."


STEERING = (
    DialogTool(
        name=CLEAR_MIND,
        description=(
            "Begin a new course: the messages so far leave your context, reminders and Taskdoc stay. "
            "Write down first what you will need; reminder_content is added as a reminder."
        ),
        parameters=schema(reminder_content=TEXT | {"optional": True}),
        perform=by_the_round,
    ),
    DialogTool(
        name=ASK_HUMAN,
        description="Ask the person something that only they can decide. You wait until they have answered.",
        parameters=schema(
            question=TEXT,
            choices={
                "type": "array",
                "items": TEXT,
                "maxItems": 8,
                "description": "Short answers to choose from.",
                "optional": True,
            },
        ),
        perform=by_the_round,
    ),
)

GOAL_DONE = DialogTool(
    name="goal_done",
    description="Say that the goal you are working towards by yourself is reached.",
    parameters=schema(summary=TEXT),
    perform=goal_done,
)
