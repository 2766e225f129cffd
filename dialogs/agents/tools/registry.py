"""Which tools an agent is offered in a dialog. A new tool is a new file beside this one and one line here."""

from __future__ import annotations

from dialogs.agents.reads import reminders_of, share_passed
from dialogs.agents.tools.base import Tool
from dialogs.agents.tools.mcp import mcp_tools
from dialogs.agents.tools.memory import (
    ASK,
    CLEAR,
    REMINDERS,
    goal_done,
    offers_recall,
    read_course,
    read_reminder,
    recall,
)
from dialogs.agents.tools.workspace import workspace_tools
from dialogs.models import Dialog
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.reads.courses import has_earlier_courses
from dialogs.transcript.reads.tool_calls import (
    has_room_for_one,
    made_here,
    offers_notes,
    offers_own_tools,
    offers_tools,
)

# Offered where there is room for all tools of ours: `ALL_OF_OURS` in `transcript/reads/tool_calls.py` counts these.
IN_LARGE_ROOMS: tuple[Tool, ...] = (*REMINDERS, CLEAR)


def tools_for(dialog: Dialog, *, compacted: bool | None = None) -> tuple[Tool, ...]:
    """In the order in which they are described to the model; none where its LLM is offered none.

    `compacted`: as they will be once the dialog has an archive; None: as it is now.
    """
    if not offers_tools(dialog.llm):
        return ()
    ours = own_tools(dialog, compacted=compacted)
    return ours if dialog.is_client_driven else (*ours, *workspace_tools(dialog.agent), *mcp_tools(dialog.agent))


def own_tools(dialog: Dialog, *, compacted: bool | None = None) -> tuple[Tool, ...]:
    """Dominds' own tools, which take together at most a twentieth of the room, unless somebody wants more of them.
    Where reminders are shown shortened, the tool that reads them comes on top."""
    if not offers_own_tools(dialog):
        return ()
    archive = (recall,) if offers_recall(dialog, compacted=compacted) else ()
    if dialog.is_client_driven:
        return _clients(dialog, archive)
    short = _for_shortened(dialog)
    notes = IN_LARGE_ROOMS if offers_notes(dialog) else ()
    earlier = (read_course,) if has_earlier_courses(dialog) else ()
    if not notes and has_room_for_one(dialog):
        return (*short, *(archive or earlier or (ASK,)))
    goal = (goal_done,) if active_run(dialog) else ()
    return (*notes, *short, *earlier, *archive, ASK, *goal)


def _for_shortened(dialog: Dialog) -> tuple[Tool, ...]:
    return () if share_passed(dialog, reminders_of(dialog)) is None else (read_reminder,)


def _clients(dialog: Dialog, archive: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Reminders in a client's conversation, once something was compacted; the Taskdoc and courses are ours alone."""
    notes = REMINDERS if archive and offers_notes(dialog) else ()
    short = _for_shortened(dialog) if dialog.client.offers_recall else ()
    ours = made_here(dialog)
    return (*archive, *(tool for tool in (*notes, *short) if tool.name in ours))
