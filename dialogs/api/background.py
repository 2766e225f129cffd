"""Chores that a client gives itself: titles, tags, commit messages. The model answers a chore, and nothing of it
is stored.

A chore must not become a dialog or move a meter. What does not fit the window is made to fit,
as in a conversation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from dialogs.api import chunks
from dialogs.api.canonical import split
from dialogs.api.chunks import Envelope
from dialogs.api.errors import failed_with
from dialogs.api.fitting import answer_beside, fitted
from dialogs.api.requests import ClientCall
from dialogs.api.responding import usage_of
from dialogs.common.threads import in_db
from dialogs.driver.live import LiveAnswer
from dialogs.llms.reads import settings_for
from dialogs.llms.windows import refusal
from dialogs.providers.base import ChatMessage, ChatRequest, ProviderError, ReasoningDelta, TextDelta, ToolCall
from dialogs.providers.http import bounded
from dialogs.providers.laws import paired, shaped
from dialogs.providers.pool import borrowed
from dialogs.providers.slots import slot
from health.compaction.terms import wire

if TYPE_CHECKING:
    from dialogs.api.reading import Asked
    from dialogs.api.schemas import ChatBody

TASK_HEADER = "x-dominds-task"
# In the name of a chore: its answer will stand in place of the history.
SUMMARISING = ("summar", "compact", "compress")


@dataclass(frozen=True, kw_only=True)
class Chore:
    """How a program's own request is known: by words of its own, all of them, in a request of just this shape.

    `system` stands in its only system message, which there is not where this is empty; `begins`, `has` and `ends` are
    of its only other message, a user's. A person may type any one of these.
    """

    sender: str
    system: str = ""
    begins: str = ""
    has: tuple[str, ...] = ()
    ends: str = ""
    streams: bool = False
    summarises: bool = False


CHORES = (
    # Titles, tags, follow-ups, search queries, image prompts.
    Chore(
        sender="Open WebUI",
        begins="### Task:\n",
        has=("\n### Output:\n", "\n### Chat History:\n<chat_history>\n"),
        ends="</chat_history>",
    ),
    Chore(
        sender="aider, a commit message",
        system="You are an expert software engineer that generates concise, one-line Git commit messages based on the "
        "provided diffs.\nReview the provided context and diffs which are about to be committed to a git repo.",
        has=("# Diffs:\n",),
    ),
    Chore(
        sender="aider, its summary of a chat",
        system="*Briefly* summarize this partial conversation about programming.\n"
        "Include less detail about older parts",
        begins="# ",
        summarises=True,
    ),
    Chore(
        sender="opencode, a title",
        system="You are a title generator. You output ONLY a thread title. Nothing else.",
        streams=True,
    ),
    Chore(
        sender="crush, a title",
        system="you will generate a short title based on the first message a user begins a conversation with",
        streams=True,
    ),
)


def is_background(request: HttpRequest, body: ChatBody, messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request is a chore: its header says so, or it has the shape that only a program known to us writes."""
    return bool(_task(request)) or _known(body, messages) is not None


def is_summarising(request: HttpRequest, body: ChatBody, messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the answer to a chore will stand in place of the history."""
    known = _known(body, messages)
    return any(word in _task(request) for word in SUMMARISING) or (known is not None and known.summarises)


def _task(request: HttpRequest) -> str:
    """The client's name of its chore; a template that it did not fill in is none."""
    task = request.headers.get(TASK_HEADER, "").strip().lower()
    return "" if task.startswith("{{") else task


def _known(body: ChatBody, messages: Sequence[Mapping[str, Any]]) -> Chore | None:
    asked = () if body.tools else (chore for chore in CHORES if chore.streams or not body.stream)
    return next((chore for chore in asked if _is(chore, messages)), None)


def _is(chore: Chore, messages: Sequence[Mapping[str, Any]]) -> bool:
    roles = ["system", "user"] if chore.system else ["user"]
    if len(messages) != len(roles) or [message["role"] for message in messages] != roles:
        return False
    system, said = wire.text_of(messages[0]), wire.text_of(messages[-1]).strip()
    has_system = not chore.system or chore.system.lower() in system.lower()
    has_words = all(words in said for words in chore.has)
    return has_system and has_words and said.startswith(chore.begins) and said.endswith(chore.ends)


async def prepared(asked: Asked) -> ChatRequest:
    """The request for a chore, made to fit. Raises ApiError, as nothing has been answered yet."""
    if error := await refusal(asked.target.llm):
        raise failed_with(error)
    made: ChatRequest = await in_db(request_of)(asked)
    return made


async def whole(asked: Asked, request: ChatRequest, sent: Envelope) -> dict[str, Any]:
    """The body of the answer to a chore that is not streamed. Raises ApiError."""
    live = LiveAnswer()
    try:
        async for _piece in _pieces(asked, request, sent, live):
            pass
    except ProviderError as error:
        raise failed_with(error) from error
    calls, reason = _ending(live)
    message = chunks.message(live.text, live.reasoning, calls)
    return sent.whole(message, finish_reason=reason, usage=usage_of(live.usage), ours={})


async def stream(asked: Asked, request: ChatRequest, sent: Envelope) -> AsyncGenerator[bytes, None]:
    """Every byte of a streamed answer."""
    live = LiveAnswer()
    yield sent.role()
    try:
        async with aclosing(_pieces(asked, request, sent, live)) as pieces:
            async for piece in pieces:
                yield piece
    except ProviderError as error:
        yield chunks.event(failed_with(error).as_json())
        return
    calls, reason = _ending(live)
    for last in chunks.ending(sent, calls, reason, usage_of(live.usage) if asked.wants_usage else None):
        yield last


async def _pieces(asked: Asked, request: ChatRequest, sent: Envelope, live: LiveAnswer) -> AsyncGenerator[bytes, None]:
    """The words of the answer as they come. `live` collects its calls, thoughts and usage."""
    service = asked.target.llm.provider
    async with (
        slot(service.name, most=service.max_concurrent),
        borrowed(settings_for(service)) as provider,
        aclosing(bounded(provider.stream(request))) as events,
    ):
        async for event in events:
            live.add(event)
            match event:
                case TextDelta(text):
                    yield sent.text(text)
                case ReasoningDelta(text):
                    yield sent.thought(text)


def _ending(live: LiveAnswer) -> tuple[list[ClientCall], str]:
    calls = [ClientCall(id=call.id, name=call.name, arguments=call.arguments) for call in live.calls]
    return calls, chunks.finish_reason(live.finish_reason, calls=bool(calls))


def request_of(asked: Asked) -> ChatRequest:
    """The client's messages: unchanged where they fit, else shortened."""
    system, turns = split(asked.messages)
    text = "\n\n".join(filter(None, (asked.target.agent.instructions.strip(), system)))
    first = [{"role": "system", "content": text}] if text else []
    sent = fitted([*first, *turns], asked.target, asked.request, summarises=asked.is_summarising)
    return ChatRequest(
        model=asked.target.llm.model_id,
        messages=tuple(shaped(paired(map(_sent, sent)), asked.target.llm.message_shape)),
        tools=tuple(map(dict, asked.request.tools)),
        max_output_tokens=answer_beside(sent, asked.target, asked.request),
        options=asked.request.options,
    )


def _sent(message: Mapping[str, Any]) -> ChatMessage:
    content = message.get("content")
    parts = content if isinstance(content, list) and not all(map(wire.is_text, content)) else ()
    role = message["role"]
    return ChatMessage(
        role="system" if role == "developer" else role,
        content=wire.text_of(message),
        parts=tuple(parts),
        tool_calls=tuple(ToolCall(id=one.id, name=one.name, arguments=one.arguments) for one in wire.calls_of(message)),
        tool_call_id=message.get("tool_call_id"),
    )
