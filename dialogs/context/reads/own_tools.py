"""What Dominds' own tools cost a dialog in each request, and who decides which are offered. Estimated."""

from __future__ import annotations

from dataclasses import dataclass

from dialogs.agents.tools.registry import own_tools
from dialogs.context.estimate import overhead
from dialogs.context.present import offered_tools
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of
from dialogs.models import Dialog
from dialogs.models.dialog import OwnTools
from dialogs.transcript.reads.tool_calls import offers_notes, offers_tools


@dataclass(frozen=True, kw_only=True)
class OwnToolsNow:
    """`tokens` are what a request is shorter by without them, `share` is that of the room, where one is known."""

    names: tuple[str, ...]
    tokens: int
    share: float | None
    choice: str
    # Not all of our tools are offered, to spare a small room.
    is_spared: bool
    # The LLM takes no tools, so there is nothing to choose.
    has_none: bool

    @property
    def percent(self) -> float | None:
        return None if self.share is None else 100 * self.share


def own_tools_of(dialog: Dialog) -> OwnToolsNow:
    """`dialog` as `dialog_to_drive` reads it."""
    ours, guard = own_tools(dialog), guard_of(dialog)
    tokens = _cost(dialog, {tool.name for tool in ours})
    is_automatic = dialog.own_tools == OwnTools.AUTOMATIC and not dialog.is_client_driven
    return OwnToolsNow(
        names=tuple(tool.name for tool in ours),
        tokens=tokens,
        share=tokens / guard.room if guard and guard.room > 0 else None,
        choice=dialog.own_tools,
        is_spared=is_automatic and not offers_notes(dialog),
        has_none=not offers_tools(dialog.llm),
    )


def _cost(dialog: Dialog, names: set[str]) -> int:
    counter, offered = counter_of(dialog.llm), offered_tools(dialog)
    others = [tool for tool in offered if tool["function"]["name"] not in names]
    return overhead(dialog.llm, offered, counter) - overhead(dialog.llm, others, counter)
