"""The calls of an answer, which tools of ours are offered, and how large a result may be."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from django.conf import settings

from dialogs.compacting.guard import guard_of
from dialogs.models import LLM, Dialog, Message, ToolCall
from dialogs.models.agent import WhenFull
from dialogs.models.llm import ToolCalling
from dialogs.selectors.autonomous import active_run

ASK_HUMAN = "ask_human"
CLEAR_MIND = "clear_mind"
SHORT_OF_ROOM = ("caution", "critical")
# Tokens. All tools of ours together cost some 450.
LEAST_ROOM_FOR_NOTES = 9_000
# These providers' contexts are guarded by compaction, which keeps a large result whole.
NEVER_WITHHELD = frozenset({"lmstudio"})


def calls_of(message: Message) -> list[ToolCall]:
    return list(ToolCall.objects.filter(message=message).select_related("message__course"))


def calls_by_message(ids: Sequence[int]) -> dict[int, tuple[ToolCall, ...]]:
    """The calls that these messages made, in their order; messages without any are left out."""
    calls: dict[int, tuple[ToolCall, ...]] = {}
    if not ids:
        return calls
    for call in sorted(ToolCall.objects.filter(message_id__in=ids).order_by(), key=attrgetter("position")):
        calls[call.message_id] = (*calls.get(call.message_id, ()), call)
    return calls


def offers_tools(llm: LLM) -> bool:
    return llm.tool_calling == ToolCalling.AUTO


def offers_notes(dialog: Dialog) -> bool:
    """Is the agent shown the tools that write reminders and the Taskdoc and that begin a course?

    Not where they would take more than a twentieth of a room in which compaction keeps what matters anyway; an agent
    that works by itself, or that is to be reminded first, has them all the same.
    """
    if not offers_tools(dialog.llm):
        return False
    if dialog.agent.when_full == WhenFull.REMIND:
        return True
    guard = guard_of(dialog)
    is_small = guard is not None and not guard.off and guard.room < LEAST_ROOM_FOR_NOTES
    return not is_small or active_run(dialog) is not None


def withheld_above(llm: LLM, *, level: str, guarded: bool) -> int | None:
    """Bytes above which a result is withheld from the model at this level; None when none is.

    Where compaction makes room (`guarded`), only what an admin wrote down for this LLM counts.
    """
    if level not in SHORT_OF_ROOM:
        return None
    limit = llm.tool_result_limit_bytes
    if limit is None:
        spared = guarded or llm.provider.kind in NEVER_WITHHELD
        return None if spared else settings.DOMINDS_TOOL_RESULT_BYTES
    return limit or None
