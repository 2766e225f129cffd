"""Chores: requests that a client's program makes for itself, for titles, tags, commit messages. The model answers them,
and nothing is stored: a chore must not become a dialog or a reading.

A chore that does not fit the window is shortened, without a view and without asking a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from dialogs.api import chunks
from dialogs.api.canonical import ClientCall, ClientRequest, split
from dialogs.api.chunks import Envelope
from dialogs.api.errors import ApiError, failed_with, invalid_request
from dialogs.api.responding import usage_of
from dialogs.api.writes.client_turns import Target
from dialogs.common.threads import in_db
from dialogs.context.estimate import beside_an_answer, overhead, surely_within
from dialogs.driver.streaming import LiveAnswer
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of, room_of
from dialogs.llms.reads import settings_for
from dialogs.llms.windows import refusal
from dialogs.models import ClientConversation, Dialog
from dialogs.providers.base import ChatMessage, ChatRequest, ProviderError, ReasoningDelta, TextDelta, ToolCall
from dialogs.providers.http import bounded
from dialogs.providers.laws import paired, shaped
from dialogs.providers.pool import borrowed, slot
from health.compaction.reading.messages import parse, render
from health.compaction.terms import wire
from health.compaction.terms.ports import Counter, Kit
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import INSTRUCTING, Unit, rounds, total
from health.compaction.trimming.clamp import HEAD_SHARE, clamped
from health.services import compact_messages
from health.tokens.corrected import likely_of
from health.tokens.counters import counter_for

if TYPE_CHECKING:
    from dialogs.api.reading import ParsedRequest
    from dialogs.api.schemas import ChatBody

TASK_HEADER = "x-dominds-task"
# A part of a chore's name that says that its answer will replace the history.
SUMMARISING = ("summar", "compact", "compress")


@dataclass(frozen=True, kw_only=True)
class Chore:
    """A pattern of a program's chore: all of its texts must be in a request of exactly this shape.

    `system`: in the only system message; if empty there is none. `begins`, `has` and `ends`: in the only other message,
    a user's. Each of them alone might be typed by a person.
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
    """The client's name of the chore; "" if the header is an unfilled template."""
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


async def prepared(asked: ParsedRequest) -> ChatRequest:
    """The request for a chore, made to fit. Raises ApiError, as nothing has been answered yet."""
    if error := await refusal(asked.target.llm):
        raise failed_with(error)
    made: ChatRequest = await in_db(request_of)(asked)
    return made


async def whole(asked: ParsedRequest, request: ChatRequest, sent: Envelope) -> dict[str, Any]:
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


async def stream(asked: ParsedRequest, request: ChatRequest, sent: Envelope) -> AsyncGenerator[bytes, None]:
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


async def _pieces(
    asked: ParsedRequest, request: ChatRequest, sent: Envelope, live: LiveAnswer
) -> AsyncGenerator[bytes, None]:
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


def request_of(asked: ParsedRequest) -> ChatRequest:
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


Messages = Sequence[Mapping[str, Any]]
# Among fewer messages there is nothing to choose: the longest is shortened.
LEAST_TO_COMPACT = 4
LEAST_TOKENS = 120
# Of a text that is to be summarised nearly all that is kept is its beginning; its end may say what to do.
OLDEST_SHARE = 0.95
# How clients begin a summary that replaced a history. It only decides which text gets room.
SUMMARY_BEGINS = (
    "i spoke to you previously about",
    "this session is being continued from a previous",
    "the conversation history before this point was compacted",
    "this is a summary of",
    "here is a summary of",
    "summary of the conversation",
    "summary of our conversation",
    "conversation summary",
    "<summary>",
)
NOTE = "\n[… {count:,} characters left out here …]\n"


def fitted(messages: Messages, target: Target, request: ClientRequest, *, summarises: bool) -> Messages:
    """The messages, unchanged if they fit or the model is unguarded, else made to fit. Raises ApiError if they cannot.

    `summarises`: what is answered will replace them in the client's history.
    """
    dialog = _dialog(target, request)
    guard = guard_of(dialog)
    if guard is None or (guard.off and not guard.cuts_silently):
        return messages
    if guard.refused:
        raise _too_large(str(guard.refused))
    counter = counter_of(target.llm)
    tokens, besides = _tokens(messages, counter), overhead(target.llm, request.tools, counter)
    if guard.off:
        return _uncut(messages, tokens + besides, room_of(dialog) or guard.room)
    # No report of a chore is kept, and none is asked again: all of it must fit however the model counts.
    room, most = surely_within(guard.room, counter) - besides, guard.room - besides
    if tokens <= room:
        return messages
    if summarises:
        return _shortened(_oldest(messages, room, counter), room, counter, most=most, head_share=OLDEST_SHARE)
    chosen = _compacted(messages, room, target.llm.model_id, counter) if len(messages) >= LEAST_TO_COMPACT else messages
    return _shortened(chosen, room, counter, most=most)


def answer_beside(messages: Messages, target: Target, request: ClientRequest) -> int | None:
    """The answer's maximum: what was asked for, lowered where only prompt and answer together are too long."""
    guard, asked = guard_of(_dialog(target, request)), request.max_output_tokens
    if guard is None or guard.window is None or asked is None:
        return asked
    counter = counter_of(target.llm)
    tokens, likely = (_prompt(messages, target, request, one) for one in (counter, likely_of(counter)))
    return min(asked, max(guard.answer, guard.window - beside_an_answer(tokens, margin=tokens - likely)))


def _dialog(target: Target, request: ClientRequest) -> Dialog:
    """A dialog that is not stored, for calls of the guard."""
    dialog = Dialog(agent=target.agent, llm=target.llm, is_client_driven=True)
    dialog.client = ClientConversation(dialog=dialog, max_output_tokens=request.max_output_tokens)
    return dialog


def _prompt(messages: Messages, target: Target, request: ClientRequest, counter: Counter) -> int:
    return _tokens(messages, counter) + overhead(target.llm, request.tools, counter)


def _uncut(messages: Messages, tokens: int, room: int) -> Messages:
    """Where compaction is off and the server would cut. Raises ApiError for what does not fit."""
    if tokens > room:
        why = Reason(Why.WOULD_BE_CUT, {"tokens": tokens, "limit": room})
        raise invalid_request(str(why), param="messages", code="context_length_exceeded")
    return messages


def _tokens(messages: Messages, counter: Counter) -> int:
    return total(parse(messages, counter=counter).units)


def _compacted(messages: Messages, room: int, model: str, counter: Counter) -> Messages:
    """The passages that matter. The room is counted as the engine counts by itself, without what a server reported."""
    ours, plain = _tokens(messages, counter), _tokens(messages, counter_for(model))
    limit = max(1, room * plain // ours)
    return compact_messages(messages, limit_tokens=limit, model=model, embedder="static").messages


def _oldest(messages: Messages, room: int, counter: Counter) -> Messages:
    """For a chore whose answer will replace the history: the oldest texts are kept first, since the newest stay in the
    client's history anyway. Instructions, the last words and the last summary stay; what that summary covers comes
    last.
    """
    kit, parsed = Kit(counter=counter), parse(messages, counter=counter)
    cuts = rounds(parsed.units)
    summary = max((at for at, cut in enumerate(cuts[:-1]) if _is_summary(cut[0])), default=-1)
    stays = [at for at, cut in enumerate(cuts) if cut[0].role in INSTRUCTING or at in (summary, len(cuts) - 1)]
    found: dict[int, Sequence[Unit]] = {at: cuts[at] for at in stays}
    left = room - sum(map(total, found.values()))
    for at in (one for one in (*range(summary + 1, len(cuts)), *range(summary)) if one not in stays):
        found[at] = _within(cuts[at], left, kit)
        if found[at] != cuts[at]:
            break
        left -= total(cuts[at])
    return render([unit for at in sorted(found) for unit in found[at]], parsed.originals)


def _is_summary(unit: Unit) -> bool:
    return unit.content.lstrip(" #*\n").lower().startswith(SUMMARY_BEGINS)


def _within(cut: Sequence[Unit], room: int, kit: Kit) -> Sequence[Unit]:
    """A cut as it is where it fits; else the beginning of a long text, and nothing of calls with their results."""
    if total(cut) <= room:
        return cut
    excess, first = total(cut) - room, cut[0]
    is_text = len(cut) == 1 and kit.tokens(first.content) - excess >= LEAST_TOKENS
    return (_short(first, excess, kit, OLDEST_SHARE),) if is_text else ()


def _shortened(
    messages: Messages, room: int, counter: Counter, *, most: int, head_share: float = HEAD_SHARE
) -> Messages:
    """The longest texts to their beginnings and ends, one after another, until all fit; never the instructions.

    Raises ApiError where what cannot be shorter is more than `most`.
    """
    kit, parsed = Kit(counter=counter), parse(messages, counter=counter)
    units = list(parsed.units)
    for _each in units:
        excess = total(units) - room
        if excess <= 0:
            return render(units, parsed.originals)
        at = max(range(len(units)), key=lambda place: _may_give(units[place]))
        units[at] = _short(units[at], excess, kit, head_share)
    if total(units) > most:
        needs, limit = f"≈{total(units):,}", f"{max(0, most):,}"
        raise _too_large(f"This task needs {needs} tokens, and there is room for {limit}. Its texts cannot be shorter.")
    return render(units, parsed.originals)


def _may_give(unit: Unit) -> int:
    return 0 if unit.role in INSTRUCTING else unit.estimated_tokens or 0


def _short(unit: Unit, excess: int, kit: Kit, head_share: float) -> Unit:
    least = max(LEAST_TOKENS, kit.tokens(unit.content) - excess)
    content = clamped(unit.content, max_tokens=least, kit=kit, note=NOTE, head_share=head_share)
    (short,) = kit.counted([unit.saying(content)])
    return short


def _too_large(words: str) -> ApiError:
    return invalid_request(words, param="messages", code="context_compaction_failed")
