"""Which tools an agent is offered in a dialog. A new tool is a new file beside this one and one line here."""

from __future__ import annotations

from dialogs.driver.tools.base import Tool
from dialogs.driver.tools.mcp import mcp_tools
from dialogs.driver.tools.memory import TOOLS as MEMORY
from dialogs.driver.tools.recall import RECALL, offers_recall
from dialogs.driver.tools.steering import GOAL_DONE, STEERING
from dialogs.driver.tools.workspace import workspace_tools
from dialogs.models import Dialog
from dialogs.selectors.autonomous import active_run
from dialogs.selectors.tool_calls import offers_tools


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
    return (*MEMORY, *archive, *STEERING, *goal, *workspace_tools(dialog.agent), *mcp_tools(dialog.agent))
