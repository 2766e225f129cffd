"""Which tools an agent is offered in a dialog. A new tool is a new file beside this one and one line here."""

from __future__ import annotations

from dialogs.driver.tools.base import Tool
from dialogs.driver.tools.mcp import mcp_tools
from dialogs.driver.tools.memory import READ_COURSE, REMINDERS
from dialogs.driver.tools.recall import RECALL, offers_recall
from dialogs.driver.tools.steering import ASK, CLEAR, GOAL_DONE
from dialogs.driver.tools.workspace import workspace_tools
from dialogs.models import Dialog
from dialogs.selectors.autonomous import active_run
from dialogs.selectors.courses import has_earlier_courses
from dialogs.selectors.tool_calls import offers_notes, offers_tools


def tools_for(dialog: Dialog, *, compacted: bool | None = None) -> tuple[Tool, ...]:
    """In the order in which they are described to the model; none where its LLM is offered none.

    `compacted`: as they will be once the dialog has an archive; None: as it is now.
    """
    if not offers_tools(dialog.llm):
        return ()
    archive = (RECALL,) if offers_recall(dialog, compacted=compacted) else ()
    if dialog.is_client_driven:
        return archive
    goal = (GOAL_DONE,) if active_run(dialog) else ()
    notes = (*REMINDERS, CLEAR) if offers_notes(dialog) else ()
    earlier = (READ_COURSE,) if has_earlier_courses(dialog) else ()
    return (*notes, *earlier, *archive, ASK, *goal, *workspace_tools(dialog.agent), *mcp_tools(dialog.agent))
