"""The laws of a valid request, and how messages that break one are corrected. PURE.

`LAWS` hold for all our requests; the scripted provider refuses a request that breaks one. `paired` corrects a client's
calls and results. `SHAPES` are stricter forms for servers whose chat template refuses more (Mistral's and Gemma's: two
users in a row, a user after a result, long ids), and for services as strict. A stricter shape is used only after the
server's refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

from dialogs.providers.base import ChatMessage, ToolCall
from health.compaction.reading.pairing import NO_RESULT, STRAY_RESULT

ROLES = frozenset({"system", "user", "assistant", "tool"})
# Texts that fill in where a strict template requires an answer, or a first user message.
EARLIER = "[Earlier messages are not shown.]"
UNANSWERED = "[No answer: the next message came first.]"
OF_SYSTEM = "[From the system]"
# The form of a tool call's id that strict templates accept.
ID = re.compile(r"[A-Za-z0-9]{9}")

Mend = Callable[[list[ChatMessage]], list[ChatMessage]]


def broken_law(messages: Sequence[ChatMessage]) -> str:
    """The first broken law in words; empty when the request is valid."""
    return next(filter(None, (law(messages) for law in LAWS)), "")


def shaped(messages: Iterable[ChatMessage], shape: str) -> list[ChatMessage]:
    """The messages as a server of that shape takes them. Nobody's words are lost, and a user's stay the user's."""
    found = list(messages)
    for mend in SHAPES[shape]:
        found = mend(found)
    return found


def next_shape(shape: str, words: str) -> str | None:
    """The shape to try after a refusal in these words; None where no stricter one answers it."""
    wanted = "no_system" if WITHOUT_SYSTEM.search(words) else "strict"
    order = list(SHAPES)
    return wanted if order.index(wanted) > order.index(shape) else None


# What templates raise and strict services say, whatever status a server makes of it, such as "Conversation roles must
# alternate user/assistant/…", "Unexpected role 'user' after role 'tool'", "System role not supported".
WITHOUT_SYSTEM = re.compile(r"system role (is )?not supported", re.IGNORECASE)
OF_SHAPE = re.compile(
    r"roles? must alternate|alternate between user|unexpected role|(successive|consecutive) (user|assistant)"
    r"|tool call ids? should be|only user and assistant roles|no user query found|system message must be"
    r"|first message must use the .?user|"
    + WITHOUT_SYSTEM.pattern
    # Refusals of an empty assistant message: Mistral, vLLM, Moonshot, Bedrock, xAI, gateways.
    + r"|content or .?tool_calls|invalid assistant message|non-empty content|has no content"
    r"|assistant.? must not be empty|content field in the message object at [\w.]{1,40} is empty"
    r"|at least one content element",
    re.IGNORECASE,
)


def _roles_are_known(messages: Sequence[ChatMessage]) -> str:
    strange = next((message.role for message in messages if message.role not in ROLES), None)
    return f"the role {strange!r} is unknown" if strange is not None else ""


def _a_user_begins(messages: Sequence[ChatMessage]) -> str:
    first = next((message.role for message in messages if message.role != "system"), "user")
    return f"the talk begins with the role {first!r}" if first != "user" else ""


def _calls_and_results_are_paired(messages: Sequence[ChatMessage]) -> str:
    """Every call is answered once, right after the message that made it; every result has its call."""
    unanswered: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in unanswered:
                return f"{message.tool_call_id!r} is the result of no open call"
            unanswered.discard(message.tool_call_id)
            continue
        if unanswered:
            break
        if message.tool_calls:
            unanswered = {call.id for call in message.tool_calls}
            if len(unanswered) < len(message.tool_calls):
                return "two calls have one id"
    return f"the calls {sorted(unanswered)} have no results" if unanswered else ""


def _somebody_waits_for_an_answer(messages: Sequence[ChatMessage]) -> str:
    return "" if messages and messages[-1].role in {"user", "tool"} else "there is nothing to answer"


LAWS = (_roles_are_known, _a_user_begins, _calls_and_results_are_paired, _somebody_waits_for_an_answer)


def paired(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with each call followed by one result, as every service requires.

    A call without a result gets one that says so; a result without its call, or a second one, becomes a user message.
    """
    found = list(messages)
    return list(_in_rounds(found)) if _calls_and_results_are_paired(found) else found


def _in_rounds(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    waiting: dict[str, list[str]] = {}
    strays: list[ChatMessage] = []
    for message in messages:
        ids = waiting.get(message.tool_call_id or "") if message.role == "tool" else None
        if ids:
            yield replace(message, tool_call_id=ids.pop(0))
        elif message.role == "tool":
            strays.append(_stray(message))
        else:
            yield from _closed(waiting, strays)
            asking = _with_own_ids(message)
            waiting, strays = _waiting(message, asking), []
            yield asking
    yield from _closed(waiting, strays)


def _closed(waiting: Mapping[str, Sequence[str]], strays: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    for call_id in (one for ids in waiting.values() for one in ids):
        yield ChatMessage(role="tool", content=NO_RESULT, tool_call_id=call_id)
    yield from strays


def _waiting(message: ChatMessage, asking: ChatMessage) -> dict[str, list[str]]:
    """By the id that the client gave a call, the ids under which results are awaited."""
    found: dict[str, list[str]] = {}
    for said, sent in zip(message.tool_calls, asking.tool_calls, strict=True):
        found.setdefault(said.id, []).append(sent.id)
    return found


def _with_own_ids(message: ChatMessage) -> ChatMessage:
    """Give each call of a message an id of its own."""
    taken: set[str] = set()
    calls = []
    for at, call in enumerate(message.tool_calls):
        calls.append(replace(call, id=f"{call.id}_{at}") if call.id in taken else call)
        taken.add(calls[-1].id)
    return replace(message, tool_calls=tuple(calls))


def _stray(message: ChatMessage) -> ChatMessage:
    label = {"type": "text", "text": STRAY_RESULT}
    parts = (label, *message.parts) if message.parts else ()
    return ChatMessage(role="user", content=f"{STRAY_RESULT}\n{message.content}", parts=parts)


def begun_by_a_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    at = len(list(takewhile(is_system, messages)))
    begins = at == len(messages) or messages[at].role == "user"
    return messages if begins else [*messages[:at], ChatMessage(role="user", content=EARLIER), *messages[at:]]


def without_calls(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Calls and results as text, for a model that is offered no tools: many templates have no place for them then."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [_told(message, names) for message in messages]


def merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Consecutive messages of one role merged, since many templates and some services refuse them.

    They occur where the prompt between two answers is left out, and where a message got no answer.
    """
    runs: list[list[ChatMessage]] = []
    for message in messages:
        if runs and is_merged(message, runs[-1][-1]):
            runs[-1].append(message)
        else:
            runs.append([message])
    return [run[0] if len(run) == 1 else _as_one(run) for run in runs]


def is_merged(message: ChatMessage, before: ChatMessage) -> bool:
    """Does it become one message with the one before?"""
    return message.role == before.role != "tool" and not before.tool_calls


def _as_one(run: Sequence[ChatMessage]) -> ChatMessage:
    shown = any(message.parts for message in run)
    parts = tuple(part for message in run for part in _parts(message)) if shown else ()
    return replace(run[-1], content=_joined(*(message.content for message in run)), parts=parts)


def _one_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """One system message at the beginning; later ones become user messages."""
    first = list(takewhile(is_system, messages))
    one = [replace(first[0], content=_joined(*(message.content for message in first)))] if first else []
    return [*one, *(_by_user(message) if is_system(message) else message for message in messages[len(first) :])]


def _nothing_empty(messages: list[ChatMessage]) -> list[ChatMessage]:
    return [one for one in messages if one.content.strip() or one.parts or one.tool_calls or one.role == "tool"]


def _alternating(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Roles alternate: an answer is put between a result and a user message, and equal roles are not adjacent."""
    return [one for message in _side_by_side(messages) for one in message]


def _side_by_side(messages: list[ChatMessage]) -> Iterator[list[ChatMessage]]:
    before = ""
    for message in merged(messages):
        is_late = message.role == "user" and before == "tool"
        yield [ChatMessage(role="assistant", content=UNANSWERED), message] if is_late else [message]
        before = message.role


def _short_ids(messages: list[ChatMessage]) -> list[ChatMessage]:
    return [
        replace(
            message,
            tool_calls=tuple(replace(call, id=short_id(call.id)) for call in message.tool_calls),
            tool_call_id=None if message.tool_call_id is None else short_id(message.tool_call_id),
        )
        for message in messages
    ]


def short_id(call_id: str) -> str:
    """A short id, always the same for the same id."""
    return call_id if ID.fullmatch(call_id) else sha256(call_id.encode()).hexdigest()[:9]


def _no_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The system message becomes the beginning of the first user message."""
    return _alternating([_by_user(message) if is_system(message) else message for message in messages])


def is_system(message: ChatMessage) -> bool:
    return message.role == "system"


def _by_user(message: ChatMessage) -> ChatMessage:
    return replace(message, role="user", content=f"{OF_SYSTEM}\n{message.content}")


def _told(message: ChatMessage, names: dict[str, str]) -> ChatMessage:
    if message.role == "tool":
        name = names.get(message.tool_call_id or "", "a tool")
        return ChatMessage(role="user", content=f"[Result of {name}]\n{message.content}", parts=message.parts)
    if message.tool_calls:
        content = _joined(message.content, *map(_call_in_words, message.tool_calls))
        return replace(message, content=content, tool_calls=())
    return message


def _call_in_words(call: ToolCall) -> str:
    return f"[Called {call.name} with {call.arguments}]"


def _parts(message: ChatMessage) -> tuple[Mapping[str, Any], ...]:
    return message.parts or ({"type": "text", "text": message.content},)


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


_STRICT: tuple[Mend, ...] = (_one_system, _nothing_empty, _alternating, begun_by_a_user, _short_ids)
SHAPES: dict[str, tuple[Mend, ...]] = {"": (), "strict": _STRICT, "no_system": (*_STRICT, _no_system)}
