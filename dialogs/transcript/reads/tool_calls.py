"""The tool calls of an answer, as they are shown below it; which of Dominds' own tools are offered; and how large a
result may be."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, F, QuerySet
from django.db.models.functions import Coalesce, Left, Length

from dialogs.common.text import storable
from dialogs.llms.guard import guard_of, kind_of
from dialogs.models import LLM, Dialog, Message, Question, ToolCall
from dialogs.models.agent import WhenFull
from dialogs.models.dialog import OwnTools
from dialogs.models.llm import ToolCalling
from dialogs.transcript.reads.autonomous import active_run
from dominds.prepared import Many, prepared
from health.tokens.families import ToolsAs, family_of

ASK_HUMAN = "ask_human"
CLEAR_MIND = "clear_mind"
# Dominds' tools that a client's model may call; all others are the client's.
MADE_HERE = ("recall", "add_reminder", "update_reminder", "delete_reminder", "read_reminder")
# How the result of a call that could not be made begins: its tool does not exist; its arguments are no JSON object, or
# do not fit the tool's schema. Each is nearer to a call that can be made than the one before.
NO_SUCH_TOOL, UNREADABLE, UNFIT = UNMADE = ("There is no tool called ", "The arguments are not ", "Not called: ")
SHORT_OF_ROOM = ("caution", "critical")
# Tokens that all tools of ours, and that three of them, take at most, by how templates write schemas.
ALL_OF_OURS = {ToolsAs.TYPESCRIPT: 270, ToolsAs.JSON: 645, ToolsAs.INDENTED_JSON: 835}
THREE_OF_OURS = {ToolsAs.TYPESCRIPT: 115, ToolsAs.JSON: 320, ToolsAs.INDENTED_JSON: 380}
# The share of the room that our own tools take, unless somebody wants more of them, or one alone takes more.
MOST_SHARE = 1 / 20


def calls_of(message: Message) -> list[ToolCall]:
    return list(ToolCall.objects.filter(message=message).select_related("message__course"))


def calls_by_message(ids: Sequence[int]) -> dict[int, tuple[ToolCall, ...]]:
    """The calls that these messages made, in their order; messages without any are left out."""
    calls: dict[int, tuple[ToolCall, ...]] = {}
    if not ids:
        return calls
    for call in sorted(_calls_of(ids), key=attrgetter("position")):
        calls[call.message_id] = (*calls.get(call.message_id, ()), call)
    return calls


@prepared(Many(BigIntegerField()))
def _calls_of(ids: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(message_id__in=ids).order_by()


def offers_tools(llm: LLM) -> bool:
    return llm.tool_calling == ToolCalling.AUTO


def made_here(dialog: Dialog) -> list[str]:
    """The tools that Dominds runs in a client's conversation. A client's tool of the same name takes precedence."""
    theirs = {tool["function"]["name"] for tool in dialog.client.tools}
    return [name for name in MADE_HERE if name not in theirs]


def offers_own_tools(dialog: Dialog) -> bool:
    """False where the LLM takes no tools, and where a person switched Dominds' own off in this dialog."""
    return offers_tools(dialog.llm) and dialog.own_tools != OwnTools.OFF


def offers_notes(dialog: Dialog) -> bool:
    """Is the agent shown the tools that write reminders and the Taskdoc and that begin a course?

    Not where they would take more than a twentieth of a room in which compaction keeps what matters anyway; an agent
    that works by itself, that is to be reminded first, or for which a person wants all tools, has them all the same.
    """
    if not offers_own_tools(dialog):
        return False
    if dialog.agent.when_full == WhenFull.REMIND or dialog.own_tools == OwnTools.ON:
        return True
    return _is_room_for(dialog, ALL_OF_OURS) or active_run(dialog) is not None


def has_room_for_one(dialog: Dialog) -> bool:
    """Would three tools of ours take more than a twentieth of the room? One of them has to do there."""
    return not _is_room_for(dialog, THREE_OF_OURS)


def _is_room_for(dialog: Dialog, tools: Mapping[ToolsAs, int]) -> bool:
    guard, family = guard_of(dialog), family_of(dialog.llm.model_id)
    if guard is None or guard.off:
        return True
    return tools[family.tools_as] + family.calling <= MOST_SHARE * guard.room


def withheld_above(llm: LLM, *, level: str, guarded: bool) -> int | None:
    """Bytes above which a result is withheld from the model at this level; None when none is.

    Where compaction makes room (`guarded`), only what an admin wrote down for this LLM counts.
    """
    if level not in SHORT_OF_ROOM:
        return None
    limit = llm.tool_result_limit_bytes
    if limit is None:
        spared = guarded or not kind_of(llm).withholds_results
        return None if spared else settings.DOMINDS_TOOL_RESULT_BYTES
    return limit or None


# The beginning of a result that a row shows; the rest is fetched on demand.
SHOWN_CHARS = 2_000
SHORT_CHARS = 120
RESULT = Coalesce("result_message__content", "result")


@dataclass(frozen=True, kw_only=True)
class CallRow:
    call: ToolCall
    # The beginning of the result, and how long it is in all.
    result: str
    result_chars: int
    # The text that the model got in place of the result; empty when it got the result.
    withheld: str
    question: Question | None

    @property
    def key(self) -> str:
        asked = self.question.status if self.question else ""
        return f"{self.call.pk}:{self.call.status}:{self.call.attempt}:{asked}:{bool(self.withheld)}"

    @property
    def nearness(self) -> int:
        """How near the call was to one that can be made, an index into `UNMADE`; its length if it was made."""
        if self.call.status != ToolCall.Status.FAILED:
            return len(UNMADE)
        return next((at for at, begins in enumerate(UNMADE) if self.result.startswith(begins)), len(UNMADE))

    @property
    def is_tried_again(self) -> bool:
        """The call failed for the moment, and waits for its next try."""
        return self.call.status == ToolCall.Status.PENDING and self.call.retry_at is not None

    @property
    def is_cut(self) -> bool:
        return self.result_chars > len(self.result)

    @property
    def short_arguments(self) -> str:
        """The arguments on one line, `path: notes.txt, lines: 3`; JSON that is no object as it was written."""
        text = " ".join(_or_as_it_is(self.call.arguments, _on_a_line).split())
        return text if len(text) <= SHORT_CHARS else f"{text[:SHORT_CHARS]}…"

    @property
    def arguments(self) -> str:
        """Indented where it is JSON, else as the model wrote it."""
        return _or_as_it_is(self.call.arguments, partial(json.dumps, indent=2, ensure_ascii=False))


def _or_as_it_is(text: str, write: Callable[[Any], str]) -> str:
    """The JSON formatted by `write`; a text that is no JSON, or too deep, as it is, without lone surrogates."""
    try:
        return storable(write(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _on_a_line(found: Any) -> str:
    if not isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in found.items()
    }
    return ", ".join(f"{name}: {text}" for name, text in texts.items())


def call_rows(message_ids: Collection[int]) -> dict[int, tuple[CallRow, ...]]:
    """The calls of these messages, by message and in their order."""
    found: defaultdict[int, list[CallRow]] = defaultdict(list)
    for call in _calls(message_ids):
        found[call.message_id].append(_row(call))
    return {message_id: tuple(rows) for message_id, rows in found.items()}


@prepared(Many(BigIntegerField()))
def _calls(message_ids: Any) -> QuerySet[Any]:
    return (
        ToolCall.objects.select_related("question")
        .filter(message_id__in=message_ids)
        .annotate(head=Left(RESULT, SHOWN_CHARS), chars=Length(RESULT), answered=F("result_message__parts"))
        .defer("result")
    )


def _row(call: Any) -> CallRow:
    return CallRow(
        call=call,
        result=call.head,
        result_chars=call.chars,
        withheld=(call.answered or {}).get("withheld", ""),
        question=getattr(call, "question", None),
    )


def unmade_tool(dialog: Dialog) -> str:
    """The tool of the newest call, if that could not be made."""
    newest = dialog.current_leaf
    if newest is None or not newest.content.startswith(UNMADE):
        return ""
    return ToolCall.objects.filter(result_message=newest).values_list("name", flat=True).first() or ""


def whole_result(dialog: Dialog, *, call_id: int) -> str | None:
    """The whole result of a call; None when the call is not of this dialog."""
    found = ToolCall.objects.filter(pk=call_id, message__dialog=dialog).annotate(whole=RESULT)
    return found.values_list("whole", flat=True).first()
